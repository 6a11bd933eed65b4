//! Figures of a pool on this machine.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use junctura::{Code, Error, Follow, FollowOptions, Item, OfferOptions, Pool, Result, Retention};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::program::ProgramWords;
use serde_json::Value;

use super::LatencySpread;
use super::machine::{EchoProcess, spread};

/// A shorter load is not meaningful.
const TIME_MIN: Duration = Duration::from_millis(1);
/// A load that has moved nothing in this time never will.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Objects of attributes and 64 bytes, from one process to another through a server.
pub(super) fn small_objects_per_s(time: Duration, program: &ProgramWords) -> Result<f64> {
    load(time, program, &["--mode", "metadata"])
}

/// Measures objects of this size, whose payload is in shared memory.
pub(super) fn large_objects_per_s(time: Duration, program: &ProgramWords, bytes: usize) -> Result<f64> {
    load(time, program, &["--mode", "transfer", "--size", &bytes.to_string()])
}

/// On a busy machine a short load may end before its first object has arrived; then it gets more time.
fn load(time: Duration, program: &ProgramWords, arguments: &[&str]) -> Result<f64> {
    let mut time = time.max(TIME_MIN);
    loop {
        match rate(time, program, arguments)? {
            Some(rate) => return Ok(rate),
            None if time > TIME_MAX => return Err(failed("a load moved nothing in its time")),
            None => time *= 4,
        }
    }
}

fn rate(time: Duration, program: &ProgramWords, arguments: &[&str]) -> Result<Option<f64>> {
    let (duration, warmup) = (format!("{}us", time.as_micros()), format!("{}us", time.as_micros() / 4));
    let done = program
        .command()?
        .args([
            "load",
            "pool",
            "--json",
            "--window",
            "64",
            "--duration",
            &duration,
            "--warmup",
            &warmup,
        ])
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let report: Value = serde_json::from_slice(&done.stdout).map_err(|error| failed(error.to_string()))?;
    Ok(report["objects_per_s"].as_f64().filter(|rate| *rate > 0.0))
}

fn failed(cause: impl Into<String>) -> Error {
    Error::new(Code::Io, "bench", cause)
}

/// An object there, an object back: two processes and the server between them.
pub(super) fn round_trips(time: Duration, program: &ProgramWords, interrupt: &InterruptFlag) -> Result<LatencySpread> {
    let builder = Pool::builder().schema("free").name("junctura load handover");
    let pool = interrupt.watch(builder).open()?;
    let mut answers = pool.follow("space=answer")?;
    let mut other = EchoProcess::start(program, &["load", "echo", "answer", "--pool", pool.url()])?;
    other.read(&mut [0u8])?;
    let mut number = 0u64;
    spread(time, || {
        number += 1;
        offer(&pool, "question", number)?;
        receive(&mut answers)?.ok_or_else(|| Error::new(Code::Disconnected, "bench", "the other process has ended"))?;
        Ok(())
    })
}

/// The part of the other process.
pub(super) fn answer(url: &str) -> Result<()> {
    let pool = Pool::connect(url)?;
    let options = FollowOptions {
        only_new: true,
        ..FollowOptions::default()
    };
    let mut questions = pool.follow_with("space=question", options)?;
    let mut out = std::io::stdout();
    let told = out.write_all(b"\n").and_then(|()| out.flush());
    told.map_err(|error| Error::new(Code::Io, "bench", error.to_string()))?;
    let mut number = 0u64;
    while receive(&mut questions)?.is_some() {
        number += 1;
        offer(&pool, "answer", number)?;
    }
    Ok(())
}

fn offer(pool: &Pool, space: &str, number: u64) -> Result<()> {
    let options = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    let name = number.to_string();
    pool.offer_with([("space", space), ("name", name.as_str())], &[7u8; 64], options)
        .map(drop)
}

/// Waits for the next object, and releases it.
fn receive(follow: &mut Follow) -> Result<Option<()>> {
    loop {
        match follow.next_item()? {
            Some(Item::Object(_)) => return Ok(Some(())),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}
