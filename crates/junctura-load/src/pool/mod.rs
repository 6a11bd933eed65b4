//! `junctura load pool` runs the standard load of an ensemble forecast in separate processes.
//!
//! ```text
//!   coordinator --plan--> producer 0 … P-1 --offers--> pool --deliveries--> consumer 0 … C-1
//!               <-------- a line of JSON each half second, a report at the end ----------'
//! ```
//! Members are distributed: producer `p` offers those with `member % P == p`, and each object has exactly one consumer,
//! `member % C`. An object is retained until that consumer has released it. The coordinator offers and receives nothing.
//!
//! With `--groups N` consumers are members of N consumer groups, each of which receives every object; `--followers` are in no group, and
//! each object has one. Processes can be killed and replaced during the load (`kills.rs`). The first member of each group runs to
//! the end, and receives the remaining objects when all others have ended. With `--retention group` each consumer is its own group,
//! and its objects are retained until this group has released them.

mod coordinator;
mod drain;
mod kills;
mod memory;
pub(crate) mod plan;
pub(crate) mod report;
mod workers;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use junctura::Result;
use junctura_terminal::program::ProgramWords;
use junctura_terminal::size;
use serde::{Deserialize, Serialize};

use self::kills::KillCounts;
pub(crate) use self::workers::work;
use crate::FieldArguments;

/// Part of each payload that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TouchMode {
    /// Attributes and a stamp of 64 bytes only
    Metadata,
    /// Payload pages are resident; the producer stamps the first and last cache line, and the consumer checks them
    Transfer,
    /// The producer writes every byte, and the consumer reads it
    Touch,
    /// The producer writes every byte, and the consumer compares a checksum
    Verify,
}

/// Retention of the objects of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RetentionEnd {
    /// Until all receivers have released the object
    Count,
    /// Until the group of its consumer has released it: each consumer is its own group
    Group,
}

const EXAMPLES: &str = "Examples:
  junctura load pool --mode metadata --window 64            how many objects a second
  junctura load pool --size 804KiB --mode touch             how many bytes a second, written and read
  junctura load pool --producers 4 --consumers 4 --groups 2 --json";

/// Load a pool as an ensemble forecast does, and measure
///
/// Producers offer fields of members x steps x levels x parameters, one forecast after the other; each object has one
/// consumer, which checks and releases it. Without --pool, the command starts its own server.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PoolLoadArguments {
    /// The pool to load (default: its own server)
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// URL of the pool for consumers, for example over a network
    #[arg(long, value_name = "URL", requires = "pool")]
    consume_from: Option<String>,
    /// URL of the pool for producers, for example over a network
    #[arg(long, value_name = "URL", requires = "pool")]
    offer_to: Option<String>,
    #[command(flatten)]
    fields: FieldArguments,
    /// Take the payload from the first message of this GRIB file
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    grib: Option<PathBuf>,
    /// Producer processes
    #[arg(long, default_value_t = 1, value_parser = crate::counts(crate::PROCESSES_MAX))]
    producers: u32,
    /// Consumer processes
    #[arg(long, default_value_t = 1, value_parser = crate::counts(crate::PROCESSES_MAX))]
    consumers: u32,
    /// Number of consumer groups, each of which receives every object (default: each object has one consumer)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::counts(crate::PROCESSES_MAX))]
    groups: u32,
    /// With --groups: number of consumers outside all groups; each object is received by one consumer
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::counts(crate::PROCESSES_MAX))]
    followers: u32,
    /// Retention of an object: until all receivers have released it, or until the group of its only
    /// consumer has
    #[arg(long, value_enum, default_value_t = RetentionEnd::Count)]
    retention: RetentionEnd,
    /// Number of processes that are killed during the run (SIGKILL) and replaced: producers=3,consumers=3,members=10, where
    /// consumers are those outside groups; a number alone: members of groups
    #[arg(long, value_name = "WHAT", default_value = "0")]
    kills: KillCounts,
    /// Number of processes that may lose their connection during the run; each is replaced by one that reconnects
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::counts(crate::PROCESSES_MAX))]
    cuts: u32,
    /// Seed of the times and victims of kills
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How much of each payload is touched
    #[arg(long, value_enum, default_value_t = TouchMode::Transfer)]
    mode: TouchMode,
    /// Maximum number of unacknowledged offers of a producer; 1: wait for each
    #[arg(long, default_value_t = 64, value_parser = crate::counts(1 << 20))]
    window: u32,
    /// Number of a producer's objects that become visible together, in a bundle
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    bundle: Option<u64>,
    /// Number of standing subscriptions of other clients
    #[arg(long, default_value_t = 0, value_parser = crate::counts(1 << 20))]
    subscriptions: u32,
    /// Objects per second and producer (default: no limit)
    #[arg(long)]
    rate: Option<f64>,
    /// Time for which a consumer holds each object before it releases it
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "0s")]
    work: Duration,
    /// Time of the measurement
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "20s")]
    duration: Duration,
    /// Time before the measurement
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "1s")]
    warmup: Duration,
    /// Payloads of at most this size are part of the message (own server only)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    inline_max: Option<u64>,
    /// Time for which the own server polls before it sleeps
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    spin: Option<Duration>,
    /// Record the actions of every process, for a judge of histories
    #[arg(long, value_name = "FOLDER")]
    history: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[arg(skip)]
    program: ProgramWords,
}

/// Runs a load and prints its figures.
pub(crate) fn run(arguments: &PoolLoadArguments, program: &ProgramWords) -> Result<()> {
    coordinator::run(&PoolLoadArguments {
        program: program.clone(),
        ..arguments.clone()
    })
}
