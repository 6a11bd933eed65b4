//! What readers that were broken cost those who are not: the work of a server for one object.
//!
//! ```text
//! beside nobody|quota|stuck|groups [COUNT]
//! ```
//! One producer offers objects of 1 KiB, one consumer follows and releases each. Beside them nobody, a requirement
//! broken at its quota, one that was stuck, or two groups that were. Prints the time for each object; a counter of instructions
//! around this process tells more (`valgrind --tool=callgrind --toggle-collect='beside::hand_over'`).

use std::process::ExitCode;
use std::time::Instant;

use junctura_model::{Code, Error, Given, Result, Schema};
use junctura_pool::core::Core;
use junctura_pool::{Effects, PoolConfig, SpillJob};
use junctura_wire::body::{FollowRequest, Hello, RequireRequest};
use junctura_wire::fixed::{self, OfferHead, ReleasedHolding, SegmentHead};
use junctura_wire::{Reply, Request, VERSION};

/// What is given to the consumer is noted, and how many offers are answered.
#[derive(Default)]
struct Noted {
    consumer: u32,
    given: Vec<ReleasedHolding>,
    offered: u64,
    failed: Option<Error>,
}

impl Effects for Noted {
    fn reply(&mut self, client: u32, _: u64, reply: &Reply<'_>) {
        match reply {
            Reply::Delivered { head, .. } if client == self.consumer => self.given.push(ReleasedHolding {
                holding: head.holding,
                flags: 0.into(),
                sequence: head.sequence,
            }),
            Reply::Offered(_) => self.offered += 1,
            Reply::Failed(failure) => self.failed = Some(Error::from(failure.clone())),
            _ => {}
        }
    }
    fn reply_segment(&mut self, _: u32, _: u64, _: SegmentHead) {}
    fn backlog_bytes(&self, _: u32) -> usize {
        0
    }
    fn create_segment(&mut self, _: u32, _: u64) -> Result<()> {
        Ok(())
    }
    fn drop_segment(&mut self, _: u32) {}
    fn spill(&mut self, _: SpillJob<'_>) {}
    fn unspill(&mut self, _: u64, _: u64) {}
    fn disconnect(&mut self, _: u32, _: &Error) {}
}

struct Pool {
    core: Core,
    fx: Noted,
    now: u64,
    requests: u64,
}

impl Pool {
    fn join(&mut self, name: &str) -> Result<u32> {
        let client = self.core.join()?;
        let hello = Hello {
            version: VERSION,
            name: name.to_owned().into(),
            ..Hello::default()
        };
        self.ask(client, Request::Hello(hello));
        Ok(client)
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the request where they ask")]
    fn ask(&mut self, client: u32, request: Request<'_>) -> u64 {
        self.requests += 1;
        self.core
            .request(self.now, client, self.requests, &request, &mut self.fx);
        self.requests
    }

    fn require(&mut self, name: &str, change: impl FnOnce(&mut RequireRequest<'_>)) -> Result<()> {
        let client = self.join(name)?;
        let mut require = RequireRequest {
            selector: "class=od/rd".into(),
            ..RequireRequest::default()
        };
        change(&mut require);
        let requirement = self.ask(client, Request::Require(require));
        self.ask(
            client,
            Request::Follow(FollowRequest {
                window: 8,
                requirement: Some(requirement),
                ..FollowRequest::default()
            }),
        );
        Ok(())
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "nobody".to_owned());
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    match measure(&what, count) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("beside: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(what: &str, count: u64) -> Result<String> {
    let config = PoolConfig {
        budget_bytes: 16 << 20,
        schemas: Schema::builtin("mars").into_iter().collect(),
        ..PoolConfig::default()
    };
    let mut pool = Pool {
        core: Core::new(config)?,
        fx: Noted::default(),
        now: 0,
        requests: 0,
    };
    let (producer, consumer) = (pool.join("producer")?, pool.join("consumer")?);
    pool.fx.consumer = consumer;
    pool.ask(
        consumer,
        Request::Follow(FollowRequest {
            selector: "class=od".into(),
            window: 1000,
            ..FollowRequest::default()
        }),
    );
    match what {
        "nobody" => {}
        "quota" => pool.require("viewer", |require| {
            (require.breaks_on_full, require.quota_bytes) = (true, Some(1 << 20));
        })?,
        "stuck" => pool.require("stuck", |require| require.stuck_after_ms = Some(1))?,
        _ => {
            for name in ["one", "two"] {
                pool.require(name, |require| {
                    (require.name, require.group) = (Some(name.into()), true);
                    require.stuck_after_ms = Some(1);
                })?;
            }
        }
    }
    let records = records()?;
    // Until those who are in the way are broken, and what can be named of what they miss is.
    let due = match what {
        "nobody" => 0,
        "groups" => 2,
        _ => 1,
    };
    hand_over_some(&mut pool, (producer, consumer), &records, 100_000);
    if pool.core.stat().totals.broken != due {
        return Err(Error::new(Code::Protocol, "requirements", "not all are broken"));
    }
    let began = Instant::now();
    hand_over(&mut pool, (producer, consumer), &records, count);
    let each = began.elapsed().as_nanos() as f64 / count as f64;
    let lost: u64 = pool.core.stat().broken_requirements.iter().map(|one| one.lost).sum();
    Ok(format!(
        r#"{{"beside": "{what}", "objects": {count}, "ns_each": {each:.0}, "lost": {lost}}}"#
    ))
}

/// What is measured.
#[inline(never)]
fn hand_over(pool: &mut Pool, clients: (u32, u32), records: &[Vec<u8>], count: u64) {
    hand_over_some(pool, clients, records, count);
}

fn hand_over_some(pool: &mut Pool, (producer, consumer): (u32, u32), records: &[Vec<u8>], count: u64) {
    const WINDOW: u64 = 64;
    let payload = [0; 1024];
    for number in 0..count {
        let record = &records[(pool.requests % records.len() as u64) as usize];
        let head = OfferHead {
            flags: fixed::INLINE.into(),
            releases: 1.into(),
            record_length: (record.len() as u32).into(),
            length: (payload.len() as u64).into(),
            ..OfferHead::default()
        };
        let inline = &payload[..];
        pool.fx.offered = 0;
        pool.ask(producer, Request::Offer { head, record, inline });
        while pool.fx.offered == 0 {
            // Somebody keeps all there is, until it is broken.
            pool.now += 1_000_000;
            pool.core.tick(pool.now, &mut pool.fx);
            assert_eq!(pool.fx.failed, None);
        }
        if pool.core.is_behind() {
            pool.core.tick(pool.now, &mut pool.fx);
        }
        if number % WINDOW == WINDOW - 1 || number == count - 1 {
            let given = std::mem::take(&mut pool.fx.given);
            pool.ask(consumer, Request::Release(&given));
        }
    }
}

fn records() -> Result<Vec<Vec<u8>>> {
    let schema = Schema::builtin("mars").ok_or_else(|| Error::new(Code::NotFound, "schema", "mars"))?;
    let record = |number: i64| {
        let mut record = Vec::new();
        let given = [
            ("class", Given::Text("od")),
            ("expver", Given::Text("0001")),
            ("stream", Given::Text("enfo")),
            ("date", Given::Text("20261120")),
            ("time", Given::Text("0000")),
            ("type", Given::Text("pf")),
            ("levtype", Given::Text("pl")),
            ("number", Given::Integer(number % 50 + 1)),
            ("levelist", Given::Integer(number / 50 % 100 + 1)),
            ("step", Given::Integer(number / 5000)),
            ("param", Given::Text("t")),
        ];
        schema.record(given, &mut record)?;
        Ok(record)
    };
    (0..50_000).map(record).collect()
}
