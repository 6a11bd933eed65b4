//! What a producer writes and when.
//!
//! ```text
//!   0        8          16                              n-8
//!   | number | time, ns | filling (filled, touched) …   | number |
//! ```

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use rustix::thread::{NanosleepRelativeResult, nanosleep, sched_yield};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::control::Control;

/// The number of the last object, which only says that there are no more.
pub(crate) const END: u64 = u64::MAX;

/// Looks at the consumer's count before the producer gives its core away, and how often it does that before it sleeps.
const SPINS: u32 = 100;
const YIELDS: u32 = 1000;

/// Which side of the pair this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Offers.
    Producer,
    /// Receives and measures.
    Consumer,
}

/// How much of a payload is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// First and last bytes.
    Untouched,
    /// The producer writes every byte.
    Filled,
    /// The producer writes every byte, the consumer reads every byte.
    Touched,
}

/// What this process is to do.
#[derive(Debug)]
pub struct Plan {
    /// Its side.
    pub role: Role,
    /// Bytes of each payload.
    pub bytes: usize,
    /// Objects that may be on their way at once.
    pub window: usize,
    /// Payloads that the producer goes through before it comes to the first again.
    pub slots: usize,
    /// A path without ending under which the two find each other.
    pub rendezvous: PathBuf,
    pub(crate) touch: Touch,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) control: Control,
    rate: f64,
}

impl Plan {
    /// Reads the arguments.
    pub fn from_arguments() -> Result<Self, Box<dyn Error + Send + Sync>> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let [role, bytes, window, rate, touch, slots, control, rendezvous] = &words[..] else {
            return Err("ROLE BYTES WINDOW RATE TOUCH SLOTS CONTROL RENDEZVOUS".into());
        };
        Ok(Self {
            role: match role.as_str() {
                "producer" => Role::Producer,
                "consumer" => Role::Consumer,
                other => return Err(format!("{other}: producer or consumer").into()),
            },
            bytes: bytes.parse::<usize>()? / 8 * 8,
            window: window.parse()?,
            slots: slots.parse()?,
            rendezvous: rendezvous.into(),
            touch: match touch.as_str() {
                "untouched" => Touch::Untouched,
                "filled" => Touch::Filled,
                "touched" => Touch::Touched,
                other => return Err(format!("{other}: untouched, filled or touched").into()),
            },
            from_ns: 0,
            to_ns: 0,
            control: Control::open(control.as_ref())?,
            rate: rate.parse()?,
        })
    }

    /// Says that this side is ready, and waits to hear when to measure; objects flow from then on.
    pub fn begin(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        println!("ready");
        std::io::stdout().flush()?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        let (from, to) = line.trim().split_once(' ').ok_or("no times")?;
        (self.from_ns, self.to_ns) = (from.parse()?, to.parse()?);
        Ok(())
    }

    /// Waits until the driver closes the standard input: the consumer is done then.
    pub fn linger(&self) -> std::io::Result<()> {
        std::io::stdin().read_line(&mut String::new()).map(|_| ())
    }

    /// The numbers of the objects, each when it is due and there is room for it. The last one ends the run.
    #[must_use]
    pub fn objects(&self) -> Objects<'_> {
        Objects {
            plan: self,
            start_ns: now_ns(),
            next: 0,
            is_over: false,
        }
    }

    /// Writes the object's payload: the stamp, and what is to be filled.
    pub fn write(&self, payload: &mut [u8], number: u64) {
        let end = self.bytes - 8;
        if self.touch != Touch::Untouched {
            let mut value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for word in payload[16..end].as_chunks_mut::<8>().0 {
                *word = value.to_le_bytes();
                value = value.wrapping_add(0x0101_0101_0101_0101);
            }
        }
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload[8..16].copy_from_slice(&now_ns().to_le_bytes());
        payload[end..self.bytes].copy_from_slice(&number.to_le_bytes());
    }
}

/// The numbers of the objects that a producer offers.
#[derive(Debug)]
pub struct Objects<'a> {
    plan: &'a Plan,
    start_ns: u64,
    next: u64,
    is_over: bool,
}

impl Objects<'_> {
    fn pace(&self) -> u64 {
        let now = now_ns();
        if self.plan.rate <= 0.0 {
            return now;
        }
        let due = self.start_ns + (self.next as f64 * 1e9 / self.plan.rate) as u64;
        sleep(Duration::from_nanos(due.saturating_sub(now)));
        due.max(now)
    }

    fn await_room(&self) {
        let window = self.plan.window as u64;
        let mut looks = 0;
        while self.next.saturating_sub(self.plan.control.taken()) >= window {
            match looks {
                0..SPINS => std::hint::spin_loop(),
                SPINS..YIELDS => sched_yield(),
                _ => sleep(Duration::from_micros(50)),
            }
            looks += 1;
        }
    }
}

impl Iterator for Objects<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        self.is_over = self.pace() >= self.plan.to_ns;
        self.await_room();
        self.next += 1;
        Some(if self.is_over { END } else { self.next - 1 })
    }
}

/// The text that travels with an object, as long as the attributes that ours have.
pub fn attributes(number: u64, out: &mut String) {
    use std::fmt::Write;
    out.clear();
    let rest = "stream=enfo,date=20000101,time=0000,type=pf,levtype=pl,step=24,number=1,levelist=500,param=t";
    // A string takes whatever is written to it.
    let _ = write!(out, "class=od,expver=0001,{rest},n={number}");
}

/// Nanoseconds of a clock that all processes share.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sleep(time: Duration) {
    let Ok(mut left) = Timespec::try_from(time) else { return };
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}
