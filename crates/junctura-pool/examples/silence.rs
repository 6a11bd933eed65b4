//! How long a server serves nobody, when very many objects go at once, or a request concerns very many.
//!
//! ```text
//! silence expire|withdraw-all|retract|die [COUNT [AT_ONCE]]
//! silence list|follow|demand|nothing|require|group [COUNT [AT_ONCE]]
//! silence break|seal [COUNT]
//! ```
//! Prints JSON: the longest time that one event took, how long all took, and how many events that were. `first_ms` is the time of
//! the request itself. `AT_ONCE` is how many objects an event lets go, or a request looks at without being prepared; what it is in a
//! server unless given. `break` breaks a requirement that keeps all objects, `seal` completes a bundle of all. `nothing` demands by a regular expression that no object matches. The objects lie in slots of shared memory that nobody
//! touches; their keys are those of an ensemble forecast under the built-in schema `mars`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Given, Result, Schema};
use junctura_pool::core::Core;
use junctura_pool::{Effects, PoolConfig, SpillJob};
use junctura_wire::body::{
    BundleRequest, DemandRequest, FollowRequest, GroupTerms, Hello, LeaseRequest, ListRequest, RequireRequest,
    RetractRequest, TargetBody, WithdrawRequest,
};
use junctura_wire::fixed::{self, OfferHead, SegmentHead};
use junctura_wire::{Reply, Request, VERSION};

/// When all that is offered for a time goes.
const OVER: u64 = 1_000_000_000;

/// Only segments are noted.
#[derive(Default)]
struct Nowhere {
    leased: Option<(u32, u64)>,
    answers: u64,
}

impl Effects for Nowhere {
    fn reply(&mut self, _: u32, _: u64, reply: &Reply<'_>) {
        self.answers += u64::from(matches!(reply, Reply::Done(_)));
    }
    fn reply_segment(&mut self, _: u32, _: u64, head: SegmentHead) {
        if head.writable.get() == 1 {
            self.leased = Some((head.segment.get(), head.bytes.get() / head.slot_bytes.get()));
        }
    }
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
    fx: Nowhere,
    requests: u64,
    longest: Duration,
    events: u64,
    /// The request that has a bundle open, or 0.
    bundle: u64,
}

impl Pool {
    fn new(at_once: Option<usize>) -> Result<Self> {
        let mut config = PoolConfig {
            budget_bytes: 1 << 40,
            schemas: Schema::builtin("mars").into_iter().collect(),
            ..PoolConfig::default()
        };
        config.leaving_at_once = at_once.unwrap_or(config.leaving_at_once);
        config.looked_at_once = at_once.unwrap_or(config.looked_at_once);
        config.limits.segments_per_client = usize::MAX >> 32;
        Ok(Self {
            core: Core::new(config)?,
            fx: Nowhere::default(),
            requests: 0,
            longest: Duration::ZERO,
            events: 0,
            bundle: 0,
        })
    }

    /// The request that opens a bundle.
    fn open(&mut self, client: u32, members: u64) -> u64 {
        let bundle = BundleRequest {
            path: Some("forecast".into()),
            members: None,
            ..BundleRequest::default()
        };
        assert!(members > 0);
        self.ask(client, Request::Bundle(bundle));
        self.requests
    }

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
    fn ask(&mut self, client: u32, request: Request<'_>) {
        self.requests += 1;
        self.core.request(0, client, self.requests, &request, &mut self.fx);
    }

    fn offer_all(&mut self, client: u32, count: u64, milliseconds: u32) -> Result<()> {
        let schema = Schema::builtin("mars").ok_or_else(|| Error::new(Code::NotFound, "schema", "mars"))?;
        let (mut record, mut slots) = (Vec::new(), 0..0);
        let mut segment = 0;
        for number in 0..count {
            if slots.is_empty() {
                self.ask(
                    client,
                    Request::Lease(LeaseRequest {
                        payload_bytes: 4096,
                        timeout_ms: Some(0),
                        staged: false,
                    }),
                );
                let leased = self.fx.leased.take();
                let (leased, count) = leased.ok_or_else(|| Error::new(Code::PoolFull, "segment", "none"))?;
                (segment, slots) = (leased, 0..count as u32);
            }
            record.clear();
            describe(&schema, number, &mut record)?;
            let flags = if milliseconds > 0 { fixed::FOR_A_TIME } else { 0 };
            let head = OfferHead {
                flags: flags.into(),
                releases: milliseconds.into(),
                segment: segment.into(),
                slot: slots.next().unwrap_or(0).into(),
                record_length: (record.len() as u32).into(),
                length: 4096.into(),
                ..OfferHead::default()
            };
            let (record, inline) = (record.as_slice(), &[][..]);
            let request = match self.bundle {
                0 => Request::Offer { head, record, inline },
                bundle => Request::Stage {
                    bundle,
                    head,
                    record,
                    inline,
                },
            };
            self.ask(client, request);
        }
        self.core.idle();
        Ok(())
    }

    fn look(&mut self, what: &str, count: u64, client: u32, request: Request<'_>) -> String {
        let began = Instant::now();
        let mut is_ready = false;
        while !is_ready {
            self.timed(|core, _| is_ready = core.look_ahead(client, &request));
        }
        let ahead = self.longest.as_secs_f64() * 1e3;
        let asked = Instant::now();
        self.ask(client, request);
        let first = asked.elapsed().as_secs_f64() * 1e3;
        let (all, events) = (began.elapsed().as_secs_f64() * 1e3, self.events + 1);
        format!(
            r#"{{"what": "{what}", "objects": {count}, "first_ms": {first:.2}, "longest_before_ms": {ahead:.2}, "all_ms": {all:.0}, "events": {events}}}"#
        )
    }

    fn timed(&mut self, event: impl FnOnce(&mut Core, &mut Nowhere)) {
        let began = Instant::now();
        event(&mut self.core, &mut self.fx);
        self.longest = self.longest.max(began.elapsed());
        self.events += 1;
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "expire".to_owned());
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let at_once = arguments.next().and_then(|text| text.parse().ok());
    match measure(&what, count, at_once) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("silence: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(what: &str, count: u64, at_once: Option<usize>) -> Result<String> {
    let mut pool = Pool::new(at_once)?;
    let (producer, other) = (pool.join("producer")?, pool.join("other")?);
    match what {
        "retract" => pool.ask(
            other,
            Request::Require(RequireRequest {
                name: Some("group".into()),
                group: true,
                ..RequireRequest::default()
            }),
        ),
        "break" => pool.ask(
            other,
            Request::Require(RequireRequest {
                breaks_on_full: true,
                quota_bytes: Some(4096 * (count - 1)),
                ..RequireRequest::default()
            }),
        ),
        "die" => pool.ask(
            other,
            Request::Follow(FollowRequest {
                window: u32::MAX,
                group: Some("group".into()),
                group_terms: Some(GroupTerms::default()),
                ..FollowRequest::default()
            }),
        ),
        _ => {}
    }
    let is_timed = matches!(what, "expire" | "retract" | "break");
    if what == "seal" {
        pool.bundle = pool.open(producer, count);
    }
    pool.offer_all(producer, count, if is_timed { (OVER / 1_000_000) as u32 } else { 0 })?;
    if what == "retract" {
        pool.core.tick(OVER, &mut pool.fx);
        while pool.core.is_behind() {
            pool.core.tick(OVER, &mut pool.fx);
        }
    }
    if what == "die" {
        let force = WithdrawRequest {
            target: TargetBody::selector(""),
            timeout_ms: None,
            force: true,
        };
        pool.ask(producer, Request::WithdrawAll(force));
        while pool.core.is_behind() {
            pool.core.tick(0, &mut pool.fx);
        }
    }
    if what == "break" {
        // The last one exceeds the quota.
        pool.core.tick(OVER - 1, &mut pool.fx);
    }
    if !matches!(what, "die" | "seal") && pool.core.stat().objects.visible != count {
        return Err(Error::new(Code::Protocol, "objects", "not all are visible"));
    }
    if let Some(request) = question(what) {
        return Ok(pool.look(what, count, other, request));
    }
    let began = Instant::now();
    match what {
        "expire" | "break" => pool.timed(|core, fx| core.tick(OVER, fx)),
        "seal" => {
            let bundle = pool.bundle;
            pool.timed(|core, fx| core.request(0, producer, u64::MAX, &Request::Seal(bundle), fx));
        }
        "withdraw-all" => {
            let withdraw = WithdrawRequest {
                target: TargetBody::selector(""),
                timeout_ms: None,
                force: false,
            };
            pool.timed(|core, fx| core.request(0, producer, u64::MAX, &Request::WithdrawAll(withdraw), fx));
        }
        "retract" => {
            let retract = RetractRequest { name: "group".into() };
            pool.timed(|core, fx| core.request(OVER, producer, u64::MAX, &Request::Retract(retract), fx));
        }
        _ => pool.timed(|core, fx| core.leave(0, other, "it died", fx)),
    }
    let first = pool.longest.as_secs_f64() * 1e3;
    pool.longest = Duration::ZERO;
    while pool.core.is_behind() {
        pool.timed(|core, fx| core.tick(OVER, fx));
    }
    let (longest, all) = (pool.longest.as_secs_f64() * 1e3, began.elapsed().as_secs_f64() * 1e3);
    let objects = pool.core.stat().objects;
    if what != "seal" && objects.visible + objects.kept > 0 {
        return Err(Error::new(Code::Protocol, "objects", format!("{objects:?} are left")));
    }
    let events = pool.events;
    Ok(format!(
        r#"{{"what": "{what}", "objects": {count}, "first_ms": {first:.2}, "longest_after_ms": {longest:.2}, "all_ms": {all:.0}, "events": {events}}}"#
    ))
}

/// A request that concerns all objects.
fn question(what: &str) -> Option<Request<'static>> {
    let demand = |selector| {
        Request::Demand(DemandRequest {
            target: TargetBody::selector(selector),
            timeout_ms: Some(0),
            requirement: None,
            requirement_name: None,
            incomplete: false,
        })
    };
    Some(match what {
        "list" => Request::List(ListRequest::default()),
        "follow" => Request::Follow(FollowRequest {
            window: 100,
            ..FollowRequest::default()
        }),
        "demand" => demand("step>=0"),
        "nothing" => demand("param~\"^[a-s]+$\""),
        "require" => Request::Require(RequireRequest::default()),
        "group" => Request::Follow(FollowRequest {
            window: 100,
            group: Some("group".into()),
            group_terms: Some(GroupTerms::default()),
            ..FollowRequest::default()
        }),
        _ => return None,
    })
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
