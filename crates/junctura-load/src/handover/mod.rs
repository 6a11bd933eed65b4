//! `junctura load handover` measures the cost of a hand-over on this machine, compared with the machine's own means.
//!
//! It takes some seconds and no arguments, and shows whether a machine works as expected. To compare releases, use `junctura load pool` and
//! the benches of the repository.

mod machine;
mod pool;
mod table;

use std::time::Duration;

use clap::{Args, ValueEnum};
use junctura::Result;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::{StandardOutput, is_terminal};
use junctura_terminal::program::ProgramWords;
use junctura_terminal::say;
use junctura_terminal::size;
use serde::Serialize;

const EXAMPLES: &str = "Examples:
  junctura load handover                     some ten seconds, a table, and what it means
  junctura load handover --json > node7.json
  junctura load handover --time 100ms        a first look";

/// Measure the cost of a hand-over on this machine, compared with its limits
///
/// Measures small and large objects through a pool, and a round trip between two processes; for comparison, one copy in memory, a bare
/// wake-up between two threads and two processes, and the same bytes through files. The ratios show whether a pool is as fast as
/// this machine permits. For other loads: `junctura load pool`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HandoverArguments {
    /// Time for each measurement
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "1s")]
    time: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The other process of a measurement; started by `junctura load handover`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EchoArguments {
    task: BenchTask,
    /// The pool, if the task needs one
    #[arg(long)]
    pool: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BenchTask {
    /// Echo every byte
    Echo,
    /// Offer an object for each received one
    Answer,
}

/// Size of a large object: almost a field of 0.5 degrees in double precision.
const LARGE_BYTES: usize = 804 << 10;

/// Measured values. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
struct BenchFigures {
    small_objects_per_s: f64,
    large_objects_per_s: f64,
    large_gib_per_s: f64,
    large_bytes: usize,
    round_trip_us: LatencySpread,
    memcpy_gib_per_s: f64,
    thread_wake_us: LatencySpread,
    process_wake_us: LatencySpread,
    file_objects_per_s: f64,
    file_gib_per_s: f64,
    processors: usize,
    ratios: BenchRatios,
}

/// Median and 99th percentile.
#[derive(Clone, Copy, Debug, Serialize)]
struct LatencySpread {
    p50: f64,
    p99: f64,
}

/// Ratios of a pool to the machine's own means.
#[derive(Clone, Copy, Debug, Serialize)]
struct BenchRatios {
    /// Rate of large objects, relative to one copy.
    large_to_memcpy: f64,
    /// The same, relative to writing and reading a file.
    large_to_file: f64,
    /// Time of a small object, relative to a wake-up of another process.
    small_to_process_wake: f64,
    /// Time of a round trip, relative to a bare one.
    round_trip_to_process_wake: f64,
}

/// Runs the measurements.
pub(crate) fn run(arguments: &HandoverArguments, program: &ProgramWords) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let figures = measure(arguments.time, program, &interrupt)?;
    let mut out = StandardOutput::new();
    if arguments.json {
        let document = serde_json::to_value(&figures)
            .map_err(|error| junctura::Error::new(junctura::Code::Io, "bench", error.to_string()))?;
        out.json(&document)?;
    } else {
        table::write(&figures, &mut out)?;
    }
    out.flush()
}

fn measure(time: Duration, program: &ProgramWords, interrupt: &InterruptFlag) -> Result<BenchFigures> {
    let next = |what: &str| {
        if is_terminal() {
            say!("junctura: {what} ...");
        }
        interrupt.check()
    };
    next("copying memory")?;
    let memcpy = machine::memcpy_gib_per_s(time);
    next("waking a thread")?;
    let thread_wake = machine::thread_round_trips(time)?;
    next("waking a process")?;
    let process_wake = machine::process_round_trips(time, program)?;
    next("writing and reading files")?;
    let file_objects_per_s = machine::files_per_s(time, LARGE_BYTES)?;
    next("small objects")?;
    let small = pool::small_objects_per_s(time, program)?;
    next("large objects")?;
    let large = pool::large_objects_per_s(time, program, LARGE_BYTES)?;
    next("there and back")?;
    let round_trip = pool::round_trips(time, program, interrupt)?;
    let gib = LARGE_BYTES as f64 / f64::from(1 << 30);
    Ok(BenchFigures {
        small_objects_per_s: small,
        large_objects_per_s: large,
        large_gib_per_s: large * gib,
        large_bytes: LARGE_BYTES,
        round_trip_us: round_trip,
        memcpy_gib_per_s: memcpy,
        thread_wake_us: thread_wake,
        process_wake_us: process_wake,
        file_objects_per_s,
        file_gib_per_s: file_objects_per_s * gib,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        ratios: BenchRatios {
            large_to_memcpy: large * gib / memcpy,
            large_to_file: large / file_objects_per_s,
            small_to_process_wake: 1e6 / small / (process_wake.p50 / 2.0),
            round_trip_to_process_wake: round_trip.p50 / process_wake.p50,
        },
    })
}

/// Runs the other process.
pub(crate) fn work(arguments: &EchoArguments) -> Result<()> {
    match arguments.task {
        BenchTask::Echo => machine::echo(),
        BenchTask::Answer => pool::answer(arguments.pool.as_deref().unwrap_or_default()),
    }
}
