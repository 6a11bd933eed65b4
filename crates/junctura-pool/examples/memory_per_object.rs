//! How much memory of its own a server needs for each object, besides the payload: for one that is visible, and for one that
//! is gone and remembered.
//!
//! ```text
//! memory_per_object live|listed|followed|owed|spilled|tombstones [COUNT]
//! ```
//! Prints JSON. The keys are those of an ensemble forecast under the built-in schema `mars`; the pool is in this process, and
//! what the process takes from the system before and after is compared.

use std::process::ExitCode;

use junctura_model::{Code, Error, Given, Result, Schema};
use junctura_pool::core::Core;
use junctura_pool::{Effects, PoolConfig, SpillConfig, SpillJob};
use junctura_wire::body::{FollowRequest, Hello, ListRequest, RequireRequest, TargetBody, WithdrawRequest};
use junctura_wire::fixed::{self, OfferHead, SegmentHead};
use junctura_wire::{Reply, Request, VERSION};

/// Nothing of what the core orders is done; payloads to be spilled are remembered.
#[derive(Default)]
struct Nowhere {
    jobs: Vec<u32>,
}

impl Effects for Nowhere {
    fn reply(&mut self, _: u32, _: u64, _: &Reply<'_>) {}
    fn reply_segment(&mut self, _: u32, _: u64, _: SegmentHead) {}
    fn backlog_bytes(&self, _: u32) -> usize {
        0
    }
    fn create_segment(&mut self, _: u32, _: u64) -> Result<()> {
        Ok(())
    }
    fn drop_segment(&mut self, _: u32) {}
    fn spill(&mut self, job: SpillJob<'_>) {
        self.jobs.push(job.job);
    }
    fn unspill(&mut self, _: u64, _: u64) {}
    fn disconnect(&mut self, _: u32, _: &Error) {}
}

/// A pool with one client.
struct Pool {
    core: Core,
    fx: Nowhere,
    client: u32,
    requests: u64,
}

impl Pool {
    fn new(what: &str, count: u64) -> Result<Self> {
        let is_small = what == "spilled";
        let config = PoolConfig {
            budget_bytes: if is_small { 1 << 20 } else { 64 << 30 },
            spill: is_small.then(|| SpillConfig::new("/nowhere".into(), Some(1 << 40), 0)),
            schemas: Schema::builtin("mars").into_iter().collect(),
            tombstones: 2 * count as usize,
            tombstones_per_dataset: 2 * count as usize,
            ..PoolConfig::default()
        };
        let (mut core, fx) = (Core::new(config)?, Nowhere::default());
        let client = core.join()?;
        let mut pool = Self {
            core,
            fx,
            client,
            requests: 0,
        };
        pool.ask(Request::Hello(Hello {
            version: VERSION,
            name: "producer".into(),
            ..Hello::default()
        }));
        Ok(pool)
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the request where they ask")]
    fn ask(&mut self, request: Request<'_>) {
        self.requests += 1;
        self.core.request(0, self.client, self.requests, &request, &mut self.fx);
        for job in std::mem::take(&mut self.fx.jobs) {
            self.core.spilled(0, job, Ok(1), &mut self.fx);
        }
    }

    fn offer(&mut self, record: &[u8], payload: &[u8]) {
        let head = OfferHead {
            flags: fixed::INLINE.into(),
            record_length: (record.len() as u32).into(),
            length: (payload.len() as u64).into(),
            ..OfferHead::default()
        };
        self.ask(Request::Offer {
            head,
            record,
            inline: payload,
        });
    }

    fn withdraw(&mut self, record: &[u8]) {
        self.ask(Request::Withdraw(WithdrawRequest {
            target: TargetBody::key(0, record),
            timeout_ms: None,
            force: false,
        }));
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "live".to_owned());
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    match measure(&what, count) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("memory_per_object: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(what: &str, count: u64) -> Result<String> {
    let mut pool = Pool::new(what, count)?;
    match what {
        "followed" => pool.ask(Request::Follow(FollowRequest {
            window: 1,
            ..FollowRequest::default()
        })),
        "owed" => pool.ask(Request::Require(RequireRequest::default())),
        _ => {}
    }
    let schema = Schema::builtin("mars").ok_or_else(|| Error::new(Code::NotFound, "schema", "mars"))?;
    let payload: &[u8] = if what == "spilled" { &[0; 64] } else { &[] };
    let before = resident_bytes()?;
    let (mut record, mut record_bytes) = (Vec::new(), 0);
    for number in 0..count {
        record.clear();
        describe(&schema, number, &mut record)?;
        record_bytes = record.len();
        pool.offer(&record, payload);
        if what == "tombstones" {
            pool.withdraw(&record);
        }
    }
    if what == "listed" {
        pool.ask(Request::List(ListRequest::default()));
    }
    let taken = resident_bytes()?.saturating_sub(before);
    let objects = pool.core.stat().objects;
    if objects.visible + objects.tombstones != count {
        return Err(Error::new(
            Code::Protocol,
            "objects",
            format!("{objects:?} are not {count}"),
        ));
    }
    let each = taken / count;
    Ok(format!(
        r#"{{"what": "{what}", "objects": {count}, "record_bytes": {record_bytes}, "bytes_each": {each}}}"#
    ))
}

/// A field of an ensemble forecast: 50 members, 100 levels, steps as needed.
fn describe(schema: &Schema, number: u64, record: &mut Vec<u8>) -> Result<()> {
    let given = [
        ("class", Given::Text("od")),
        ("expver", Given::Text("0001")),
        ("stream", Given::Text("enfo")),
        ("date", Given::Text("20261120")),
        ("time", Given::Text("0000")),
        ("type", Given::Text("pf")),
        ("levtype", Given::Text("pl")),
        ("number", Given::Integer((number % 50) as i64 + 1)),
        ("levelist", Given::Integer((number / 50 % 100) as i64 + 1)),
        ("step", Given::Integer((number / 5000) as i64)),
        ("param", Given::Text("t")),
    ];
    schema.record(given, record)
}

/// Memory that this process has in use, from `/proc/self/statm` (proc(5)).
fn resident_bytes() -> Result<u64> {
    let unreadable = |cause: &str| Error::new(Code::Io, "/proc/self/statm", cause);
    let text = std::fs::read_to_string("/proc/self/statm").map_err(|error| unreadable(&error.to_string()))?;
    let pages = text
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or_else(|| unreadable("no number"))? * rustix::param::page_size() as u64)
}
