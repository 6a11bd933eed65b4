//! Zenoh: a session on each side, joined by a unix socket, payloads in shared memory.
//!
//! Awaited by the producer: nothing, but that no more than the window is on its way, and whatever Zenoh's own congestion
//! control waits for. Payloads are allocated from a shared-memory provider and written in place; the attributes travel as
//! an attachment.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use rivals::{Plan, Role, Tally, attributes};
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::shm::{BlockOn, GarbageCollect, ShmProviderBuilder};
use zenoh::{Config, Session, Wait};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const KEY: &str = "junctura/bench";

fn main() -> Result<()> {
    let plan = Plan::from_arguments()?;
    let session = zenoh::open(config(&plan)?).wait()?;
    match plan.role {
        Role::Producer => produce(plan, &session),
        Role::Consumer => consume(plan, &session),
    }
}

fn config(plan: &Plan) -> Result<Config> {
    let endpoint = format!("[\"unixsock-stream/{}.zenoh\"]", plan.rendezvous.display());
    let (listen, connect) = match plan.role {
        Role::Producer => ("[]", endpoint.as_str()),
        Role::Consumer => (endpoint.as_str(), "[]"),
    };
    let mut config = Config::default();
    for (key, value) in [
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
        ("transport/shared_memory/enabled", "true"),
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
    ] {
        config.insert_json5(key, value)?;
    }
    Ok(config)
}

fn produce(mut plan: Plan, session: &Session) -> Result<()> {
    let publisher = session
        .declare_publisher(KEY)
        .congestion_control(CongestionControl::Block)
        .reliability(Reliability::Reliable)
        .wait()?;
    let changes = publisher.matching_listener().wait()?;
    while !publisher.matching_status().wait()?.matching() {
        changes.recv()?;
    }
    let ahead = plan.slots.saturating_sub(plan.window).max(1);
    let bytes = (ahead + plan.window + 8) * (plan.bytes + 256) + (16 << 20);
    let provider = ShmProviderBuilder::default_backend(bytes).wait()?;
    let allocate = || {
        provider
            .alloc(plan.bytes)
            .with_policy::<BlockOn<GarbageCollect>>()
            .wait()
    };
    let mut buffers = VecDeque::with_capacity(ahead);
    while buffers.len() + 1 < ahead {
        let mut buffer = allocate()?;
        buffer.fill(0);
        buffers.push_back(buffer);
    }
    let mut text = String::new();
    plan.begin()?;
    for number in plan.objects() {
        buffers.push_back(
            provider
                .alloc(plan.bytes)
                .with_policy::<BlockOn<GarbageCollect>>()
                .wait()?,
        );
        let Some(mut buffer) = buffers.pop_front() else {
            continue;
        };
        attributes(number, &mut text);
        plan.write(&mut buffer, number);
        publisher.put(buffer).attachment(text.as_str()).wait()?;
    }
    plan.linger()?;
    Ok(())
}

fn consume(mut plan: Plan, session: &Session) -> Result<()> {
    let (done, is_done) = channel();
    let state = Arc::new(Mutex::new((None, Tally::new())));
    let shared = Arc::clone(&state);
    let _subscriber = session
        .declare_subscriber(KEY)
        .callback(move |sample| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (Some(plan), tally) = &mut *state else { return };
            let more = tally.take(plan, &sample.payload().to_bytes());
            drop(sample);
            tally.say(plan);
            if !more {
                tally.print(plan);
                // The other end is there until it has heard.
                let _ = done.send(());
            }
        })
        .wait()?;
    let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
    plan.begin()?;
    locked.0 = Some(plan);
    drop(locked);
    is_done.recv()?;
    Ok(())
}
