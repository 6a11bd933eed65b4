//! Measures the longest turns of a server: processor time of single events of the core that concern very many objects
//! or interests.
//!
//! ```text
//! turn_speed list|follow|demand|reveal|abort|abort-nested|drain|drain-bundles|drain-follows [COUNT]
//! turn_speed demands|follows|subscriptions|requirements|leave|leave-interests|leave-requirements [COUNT]
//! ```
//! A pool, a bundle or its interests get COUNT members. Then one request is prepared and made, and the work that it
//! leaves is done, as a server does it. Prints the longest of these events: `request_us` is the request itself, `step_us`
//! a step of its preparation, and `tick_us` a part of the work that it leaves.

use std::process::ExitCode;

use junctura_model::{Code, Error, Given, Result, Schema};
use junctura_pool::core::Core;
use junctura_pool::{Effects, PoolConfig, SpillJob};
use junctura_wire::body::{
    BundleRequest, DemandRequest, DrainRequest, FollowRequest, Hello, ListRequest, RequireRequest, SubscribeRequest,
    TargetBody, events,
};
use junctura_wire::fixed::{self, OfferHead, SegmentHead};
use junctura_wire::{Reply, Request, VERSION};
use rustix::time::{ClockId, clock_gettime};

/// Replies are encoded as for a client, and dropped.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    replies: u64,
}

impl Effects for Encoded {
    fn reply(&mut self, _: u32, request: u64, reply: &Reply<'_>) {
        self.replies += 1;
        self.bytes.clear();
        reply.encode(request, &mut self.bytes);
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

struct Measured {
    core: Core,
    schema: std::sync::Arc<Schema>,
    fx: Encoded,
    now: u64,
    requests: u64,
}

/// Longest events, in nanoseconds of processor time.
#[derive(Default)]
struct LongestTurns {
    step: u64,
    request: u64,
    tick: u64,
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Measured {
    fn join(&mut self, name: &str) -> Result<u32> {
        let client = self.core.join()?;
        let hello = Hello {
            version: VERSION,
            name: name.to_owned().into(),
            ..Hello::default()
        };
        self.ask(client, &Request::Hello(hello));
        Ok(client)
    }

    fn ask(&mut self, client: u32, request: &Request<'_>) -> u64 {
        self.requests += 1;
        self.core
            .request(self.now, client, self.requests, request, &mut self.fx);
        self.requests
    }

    /// Makes a request as a server does; returns its longest events.
    fn turns(&mut self, client: u32, request: &Request<'_>) -> LongestTurns {
        let mut longest = LongestTurns::default();
        loop {
            let began = cpu_ns();
            let is_ready = self.core.look_ahead(client, request);
            longest.step = longest.step.max(cpu_ns() - began);
            if is_ready {
                break;
            }
        }
        let began = cpu_ns();
        self.ask(client, request);
        longest.request = cpu_ns() - began;
        while self.core.is_behind() || self.core.is_delivering() {
            let began = cpu_ns();
            self.core.tick(self.now, &mut self.fx);
            longest.tick = longest.tick.max(cpu_ns() - began);
        }
        longest
    }

    /// Lets a client leave as a server does; returns its longest events.
    fn leaves(&mut self, client: u32) -> LongestTurns {
        let mut longest = LongestTurns::default();
        loop {
            let began = cpu_ns();
            let goes_on = self.core.wind_down(self.now, client, &mut self.fx);
            longest.step = longest.step.max(cpu_ns() - began);
            if !goes_on {
                break;
            }
        }
        let began = cpu_ns();
        self.core.leave(self.now, client, "", &mut self.fx);
        longest.request = cpu_ns() - began;
        while self.core.is_behind() || self.core.is_delivering() {
            let began = cpu_ns();
            self.core.tick(self.now, &mut self.fx);
            longest.tick = longest.tick.max(cpu_ns() - began);
        }
        longest
    }

    /// Offers an object; returns the longest events until all interests have received it.
    fn offer_to_them(&mut self, producer: u32) -> Result<LongestTurns> {
        let mut longest = LongestTurns::default();
        let began = cpu_ns();
        self.offer(producer, None, 1)?;
        longest.request = cpu_ns() - began;
        while self.core.is_behind() || self.core.is_delivering() {
            let began = cpu_ns();
            self.core.tick(self.now, &mut self.fx);
            longest.tick = longest.tick.max(cpu_ns() - began);
        }
        Ok(longest)
    }

    fn settle(&mut self) {
        while self.core.is_behind() || self.core.is_delivering() {
            self.core.tick(self.now, &mut self.fx);
        }
        while self.core.has_idle_work() {
            self.core.idle();
        }
    }

    fn offer(&mut self, client: u32, bundle: Option<u64>, number: usize) -> Result<()> {
        const KINDS: usize = 10;
        let mut record = Vec::new();
        // Members come in any order.
        let number = number as u64 * 7919 % 1_000_003;
        let given = [
            ("class", Given::Text("od")),
            ("expver", Given::Text("0001")),
            ("stream", Given::Text("enfo")),
            ("date", Given::Text("20261120")),
            ("time", Given::Text("0000")),
            ("type", Given::Text("pf")),
            ("levtype", Given::Text("pl")),
            ("number", Given::Integer(number as i64 % 50)),
            ("levelist", Given::Integer(number as i64 / 50 % 100)),
            ("step", Given::Integer(number as i64 / 5000)),
            ("param", Given::Text(["t", "u"][number as usize % KINDS / 5])),
        ];
        self.schema.record(given, &mut record)?;
        let head = OfferHead {
            flags: fixed::INLINE.into(),
            record_length: (record.len() as u32).into(),
            length: 8.into(),
            ..OfferHead::default()
        };
        let (record, inline) = (&record[..], &[0; 8][..]);
        let request = match bundle {
            None => Request::Offer { head, record, inline },
            Some(bundle) => Request::Stage {
                bundle,
                head,
                record,
                inline,
            },
        };
        self.ask(client, &request);
        Ok(())
    }

    fn fill(&mut self, client: u32, count: usize) -> Result<()> {
        for number in 0..count {
            self.offer(client, None, number)?;
        }
        self.settle();
        Ok(())
    }

    fn bundle(&mut self, client: u32, path: &str, members: std::ops::Range<usize>) -> Result<u64> {
        let open = BundleRequest {
            path: Some(path.to_owned().into()),
            ..BundleRequest::default()
        };
        let bundle = self.ask(client, &Request::Bundle(open));
        for number in members {
            self.offer(client, Some(bundle), number)?;
        }
        Ok(bundle)
    }

    fn interests(&mut self, clients: u32, count: usize, request: &Request<'_>) -> Result<()> {
        for client in 0..clients {
            let client = self.join(&format!("reader{client}"))?;
            for _ in 0..count / clients as usize {
                self.ask(client, request);
            }
        }
        self.settle();
        Ok(())
    }
}

fn demand(timeout_ms: Option<u64>) -> Request<'static> {
    Request::Demand(DemandRequest {
        target: TargetBody::selector("class=od"),
        timeout_ms,
        requirement: None,
        requirement_name: None,
        incomplete: false,
    })
}

fn follow() -> Request<'static> {
    Request::Follow(FollowRequest {
        selector: "class=od".into(),
        window: 8,
        ..FollowRequest::default()
    })
}

/// Returns the request for an interest: demands, follows (also: interests), requirements, subscriptions.
fn interest(what: &str) -> Request<'static> {
    match what {
        "demands" => demand(None),
        "requirements" => Request::Require(RequireRequest {
            selector: "class=od".into(),
            ..RequireRequest::default()
        }),
        "subscriptions" => Request::Subscribe(SubscribeRequest {
            selector: "class=od".into(),
            events: events::ALL,
        }),
        _ => follow(),
    }
}

fn measure(what: &str, count: usize) -> Result<LongestTurns> {
    let schema = Schema::builtin("mars").ok_or_else(|| Error::new(Code::NotFound, "schema", "mars"))?;
    let config = PoolConfig {
        schemas: vec![schema.clone()],
        ..PoolConfig::default()
    };
    let mut pool = Measured {
        core: Core::new(config)?,
        schema,
        fx: Encoded::default(),
        now: 0,
        requests: 0,
    };
    let (producer, reader) = (pool.join("producer")?, pool.join("reader")?);
    match what {
        "list" => {
            pool.fill(producer, count)?;
            let list = ListRequest {
                selector: "class=od".into(),
                ..ListRequest::default()
            };
            Ok(pool.turns(reader, &Request::List(list)))
        }
        "follow" => {
            pool.fill(producer, count)?;
            Ok(pool.turns(reader, &follow()))
        }
        "demand" => {
            pool.fill(producer, count)?;
            Ok(pool.turns(reader, &demand(Some(0))))
        }
        "reveal" => {
            let bundle = pool.bundle(producer, "b", 0..count)?;
            Ok(pool.turns(producer, &Request::Seal(bundle)))
        }
        "abort" => {
            let bundle = pool.bundle(producer, "b", 0..count)?;
            Ok(pool.turns(producer, &Request::Abort(bundle)))
        }
        "abort-nested" => {
            pool.bundle(producer, "b", 0..count / 2)?;
            let inner = pool.bundle(producer, "b/c", count / 2..count)?;
            Ok(pool.turns(producer, &Request::Abort(inner)))
        }
        "drain" => {
            pool.interests(4, count, &demand(None))?;
            Ok(pool.turns(producer, &Request::Drain(DrainRequest::default())))
        }
        "drain-follows" => {
            // With a window of one object, of which the second stays in the queue.
            let follow = FollowRequest {
                selector: "class=od".into(),
                window: 1,
                ..FollowRequest::default()
            };
            pool.interests(4, count, &Request::Follow(follow))?;
            pool.fill(producer, 2)?;
            Ok(pool.turns(producer, &Request::Drain(DrainRequest::default())))
        }
        "drain-bundles" => {
            pool.bundle(producer, "b", 0..count)?;
            Ok(pool.turns(reader, &Request::Drain(DrainRequest::default())))
        }
        "leave" => {
            pool.fill(producer, count)?;
            let follow = FollowRequest {
                selector: "class=od".into(),
                window: count as u32,
                ..FollowRequest::default()
            };
            pool.ask(reader, &Request::Follow(follow));
            pool.settle();
            Ok(pool.leaves(reader))
        }
        "leave-interests" | "leave-requirements" => {
            let request = interest(what.trim_start_matches("leave-"));
            for _ in 0..count {
                pool.ask(reader, &request);
            }
            pool.offer(producer, None, 1)?;
            pool.settle();
            Ok(pool.leaves(reader))
        }
        "demands" | "follows" | "subscriptions" | "requirements" => {
            pool.interests(4, count, &interest(what))?;
            pool.offer_to_them(producer)
        }
        _ => Err(Error::new(Code::InvalidArgument, what, "it is not one of the requests")),
    }
}

fn main() -> ExitCode {
    // As `junctura pool serve` does.
    junctura_transport::join_small_blocks_at_once();
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "list".to_owned());
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    match measure(&what, count) {
        Ok(LongestTurns { step, request, tick }) => {
            let us = |ns: u64| ns as f64 / 1e3;
            let (step, request, tick) = (us(step), us(request), us(tick));
            println!(
                "{{\"request\": \"{what}\", \"count\": {count}, \"step_us\": {step:.0}, \
                 \"request_us\": {request:.0}, \"tick_us\": {tick:.0}}}",
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("turn_speed: {error}");
            ExitCode::FAILURE
        }
    }
}
