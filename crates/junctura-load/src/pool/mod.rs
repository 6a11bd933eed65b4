//! `junctura load pool`: the standard load of this field, in separate processes, with figures.
//!
//! ```text
//!   coordinator --plan--> producer 0 … P-1 --offers--> pool --deliveries--> consumer 0 … C-1
//!               <-------- a line of JSON each half second, a report at the end ----------'
//! ```
//! Members are dealt out: producer `p` offers those with `member % P == p`, and each object has exactly one consumer,
//! `member % C`. An object stays until that consumer has released it. The coordinator offers and receives nothing.
//!
//! With `--groups N` consumers are members of N consumer groups, each of which gets everything; `--followers` are in none, and
//! each object has one of them. Processes may be killed and replaced meanwhile (`kills.rs`). The first of each group stays to
//! the end, and takes what is left when all others are gone. With `--retention group` each consumer is a group of its own,
//! and what is offered to it stays until this group has released it.

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

/// How much of each payload is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TouchMode {
    /// Attributes only: a stamp of 64 bytes is all there is
    Metadata,
    /// Payload pages are resident; first and last cache line are stamped by the producer and checked by the consumer
    Transfer,
    /// Every byte is written by the producer and read by the consumer
    Touch,
    /// Every byte is written, and its checksum compared by the consumer
    Verify,
}

/// Until when the objects of a load stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RetentionEnd {
    /// As many have released the object as are to receive it
    Count,
    /// The group of its consumer has released it: each consumer is a group of its own
    Group,
}

const EXAMPLES: &str = "Examples:
  junctura load pool --mode metadata --window 64            how many objects a second
  junctura load pool --size 804KiB --mode touch             how many bytes a second, written and read
  junctura load pool --producers 4 --consumers 4 --groups 2 --json";

/// Load a pool as an ensemble forecast does, and measure
///
/// Producers offer fields of members x steps x levels x parameters, one forecast after the other; each object has one
/// consumer, which checks and releases it. Without --pool, an own server is started for the run.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PoolLoadArguments {
    /// The pool to load (default: an own server)
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// Consumers reach the pool by this URL instead, which may lead through a network
    #[arg(long, value_name = "URL", requires = "pool")]
    consume_from: Option<String>,
    /// Producers reach the pool by this URL instead, which may lead through a network
    #[arg(long, value_name = "URL", requires = "pool")]
    offer_to: Option<String>,
    #[command(flatten)]
    fields: FieldArguments,
    /// Take the payload from the first message of this GRIB file
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    grib: Option<PathBuf>,
    /// Producer processes
    #[arg(long, default_value_t = 1)]
    producers: u32,
    /// Consumer processes
    #[arg(long, default_value_t = 1)]
    consumers: u32,
    /// Consumer groups that the consumers share in, each of which gets everything (default: each object has one consumer)
    #[arg(long, value_name = "N", default_value_t = 0)]
    groups: u32,
    /// With --groups: consumers besides, who are in no group; each object goes to one of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    followers: u32,
    /// Until when an object stays: until so many have released it as are to receive it, or until the group has to which its
    /// consumer belongs alone
    #[arg(long, value_enum, default_value_t = RetentionEnd::Count)]
    retention: RetentionEnd,
    /// Kill so many processes during the run (SIGKILL), each replaced by another: producers=3,consumers=3,members=10, where
    /// consumers are those in no group; a number alone: members of groups
    #[arg(long, value_name = "WHAT", default_value = "0")]
    kills: KillCounts,
    /// So many processes may lose their connection during the run, each replaced by another that connects anew
    #[arg(long, value_name = "N", default_value_t = 0)]
    cuts: u32,
    /// What is killed, and when, is drawn from this number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How much of each payload is touched
    #[arg(long, value_enum, default_value_t = TouchMode::Transfer)]
    mode: TouchMode,
    /// Offers of a producer that are not acknowledged yet; 1: each is awaited
    #[arg(long, default_value_t = 64)]
    window: u32,
    /// Each producer's objects become visible in bundles of so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    bundle: Option<u64>,
    /// Standing subscriptions of other clients
    #[arg(long, default_value_t = 0)]
    subscriptions: u32,
    /// Objects per second and producer (default: as many as possible)
    #[arg(long)]
    rate: Option<f64>,
    /// How long a consumer holds each object before it releases it
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "0s")]
    work: Duration,
    /// How long to measure
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "20s")]
    duration: Duration,
    /// How long to run before measuring
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "1s")]
    warmup: Duration,
    /// Payloads of at most this size travel inside the message (own server only)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    inline_max: Option<u64>,
    /// Let the own server look for work this long before it sleeps
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    spin: Option<Duration>,
    /// Record what every process did, for a judge of histories
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Print the figures as JSON
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
