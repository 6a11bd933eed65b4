//! One process of a load: reads its plan, waits for the start, does its part, reports.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use junctura::{Code, Error, Pool, Result};
use serde::{Deserialize, Serialize};

use super::load::Space;
use super::report::Figures;
use super::{Mode, consumer, producer, subscriber};

/// What a process is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Producer,
    Consumer,
    Subscriber,
}

/// The plan of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) role: Role,
    pub(super) index: u32,
    pub(super) url: String,
    pub(super) space: Space,
    pub(super) producers: u32,
    pub(super) consumers: u32,
    pub(super) payload_bytes: usize,
    pub(super) grib: Option<PathBuf>,
    pub(super) mode: Mode,
    pub(super) window: u32,
    pub(super) rate: Option<f64>,
    pub(super) warmup_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) subscriptions: u32,
    pub(super) history: Option<PathBuf>,
}

/// Slots that producers go through before they come to the first again, in bytes, all producers together.
const ROTATION_BYTES: usize = 512 << 20;
/// Slots that a consumer may hold while its releases are under way.
const SLOTS_UNDER_WAY: usize = 256;

/// Bytes of the slot that a payload lies in: there are four sizes between powers of two.
fn slot_bytes(payload_bytes: u64) -> u64 {
    let step = (payload_bytes.next_power_of_two() / 8).max(64);
    payload_bytes.next_multiple_of(step)
}

impl Plan {
    /// Slots that a producer goes through before it comes to the first again.
    pub(super) fn slots_in_rotation(&self) -> usize {
        (ROTATION_BYTES / self.producers as usize / self.payload_bytes).max(1)
    }

    /// Slots that a producer uses at most.
    pub(super) fn slots(&self) -> usize {
        self.slots_in_rotation() + self.window as usize + SLOTS_UNDER_WAY / self.producers as usize
    }

    /// Memory that all producers together need of a pool: not much more than they take before the run, so that whoever runs
    /// ahead waits for slots and not for the system to make pages.
    pub(super) fn budget_bytes(&self) -> u64 {
        const LARGEST_SEGMENT_BYTES: u64 = 64 << 20;
        const INLINE_BYTES: u64 = 256 << 20;
        let slots = self.slots() as u64 * slot_bytes(self.payload_bytes as u64);
        INLINE_BYTES.saturating_sub(slots) + u64::from(self.producers) * (slots + LARGEST_SEGMENT_BYTES)
    }

    /// What the process calls itself.
    pub(super) fn name(&self) -> String {
        let letter = match self.role {
            Role::Producer => 'p',
            Role::Consumer => 'c',
            Role::Subscriber => 's',
        };
        format!("{letter}{}", self.index)
    }
}

/// What the coordinator says to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// The load begins at this time of the monotonic clock.
    Start { at_ns: u64 },
    /// So many objects of each producer were offered: who has received theirs is done.
    Expect { by_producer: Vec<u64> },
    /// The run is over.
    End,
}

/// What a process says to the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    Ready,
    /// Objects so far.
    Progress {
        done: u64,
    },
    Report(Box<Figures>),
    Failed {
        code: String,
        text: String,
    },
}

/// What the coordinator has said, as far as it was read.
#[derive(Clone, Default)]
pub(super) struct Orders(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    expect: Option<Vec<u64>>,
    is_over: bool,
}

impl Orders {
    /// How many objects each producer has offered, once that is known.
    pub(super) fn expected(&self) -> Option<Vec<u64>> {
        self.0.lock().ok()?.expect.clone()
    }

    /// Whether the run is over, or its coordinator gone.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().is_ok_and(|heard| heard.is_over)
    }

    fn hear(&self, line: Option<&str>) {
        let Ok(mut heard) = self.0.lock() else { return };
        match line.and_then(|line| serde_json::from_str(line).ok()) {
            Some(Order::Expect { by_producer }) => heard.expect = Some(by_producer),
            Some(Order::Start { .. }) => {}
            Some(Order::End) | None => heard.is_over = true,
        }
    }
}

/// Reads the plan from standard input and does it; a failure is reported to the coordinator too.
pub(super) fn work() -> Result<()> {
    let mut lines = std::io::BufReader::new(std::io::stdin()).lines();
    let plan: Plan = read(lines.next())?;
    let outcome = connect_and_work(&plan, lines);
    if let Err(error) = &outcome {
        say(&Word::Failed {
            code: error.code().name().to_owned(),
            text: error.to_string(),
        })?;
    }
    outcome
}

fn connect_and_work(
    plan: &Plan,
    mut lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
) -> Result<()> {
    let pool = Pool::builder().url(&plan.url).name(plan.name()).open()?;
    let begin = |lines: &mut dyn Iterator<Item = std::io::Result<String>>| -> Result<u64> {
        say(&Word::Ready)?;
        match read(lines.next())? {
            Order::Start { at_ns } => Ok(at_ns),
            other => Err(Error::new(
                Code::Protocol,
                "hammer",
                format!("{other:?} before the start"),
            )),
        }
    };
    let figures = match plan.role {
        Role::Producer => {
            let mut producer = producer::Producer::new(plan, &pool)?;
            let at_ns = begin(&mut lines)?;
            producer.run(at_ns)?
        }
        Role::Consumer => {
            let mut consumer = consumer::Consumer::new(plan, &pool)?;
            let at_ns = begin(&mut lines)?;
            consumer.run(at_ns, &listen(lines))?
        }
        Role::Subscriber => {
            let mut subscriber = subscriber::Subscriber::new(plan, &pool)?;
            begin(&mut lines)?;
            subscriber.run(&listen(lines))?
        }
    };
    say(&Word::Report(Box::new(figures)))
}

/// Hears the coordinator on a thread, while the process works.
fn listen(lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static) -> Orders {
    let orders = Orders::default();
    let heard = orders.clone();
    std::thread::spawn(move || {
        for line in lines.map_while(std::result::Result::ok) {
            heard.hear(Some(&line));
        }
        heard.hear(None);
    });
    orders
}

fn read<T: for<'a> Deserialize<'a>>(line: Option<std::io::Result<String>>) -> Result<T> {
    let broken = |cause: String| Error::new(Code::Protocol, "hammer", cause);
    let line = line
        .ok_or_else(|| broken("the coordinator is gone".to_owned()))?
        .map_err(|e| broken(e.to_string()))?;
    serde_json::from_str(&line).map_err(|error| broken(error.to_string()))
}

/// Says a word to the coordinator.
pub(super) fn say(word: &Word) -> Result<()> {
    let gone = |error: std::io::Error| Error::new(Code::Disconnected, "hammer", error.to_string());
    let line = serde_json::to_string(word).map_err(|error| gone(error.into()))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(gone)
}
