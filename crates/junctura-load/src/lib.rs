//! `junctura load` loads pools and stores from separate processes and measures them, and the cost of a hand-over on this machine.

mod handover;
mod history;
mod load;
mod messages;
mod pool;
mod process;
mod stamp;
mod store;

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand};
use junctura::Result;
use junctura_terminal::program::ProgramWords;
use junctura_terminal::size;

use self::handover::{EchoArguments, HandoverArguments};
use self::load::LoadSpace;
use self::pool::PoolLoadArguments;
use self::store::StoreLoadArguments;

const EXAMPLES: &str = "Examples:
  junctura load handover                        is this machine in order?
  junctura load pool --size 804KiB --mode touch
  junctura load store --preset ensemble --writers 1,2,4";

/// Load a pool or a store, and measure
///
/// `handover` measures this machine and its limits for some seconds. `pool` and `store` run loads of separate processes; options set
/// the number of processes and objects.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LoadCommandArguments {
    #[command(subcommand)]
    command: LoadCommand,
}

#[derive(Subcommand, Debug)]
enum LoadCommand {
    Handover(HandoverArguments),
    Pool(Box<PoolLoadArguments>),
    Store(StoreLoadArguments),
    #[command(hide = true)]
    Worker(LoadWorkerArguments),
    #[command(hide = true)]
    Echo(EchoArguments),
}

/// The fields of a load: one object for each member, step, level and parameter.
#[derive(Args, Clone, Debug)]
pub(crate) struct FieldArguments {
    /// Ensemble members (at least as many as producers and as consumers)
    #[arg(long, default_value_t = 10, value_parser = counts(1_000_000))]
    members: u32,
    /// Forecast steps, 6 hours apart
    #[arg(long, default_value_t = 10, value_parser = counts(1_000_000))]
    steps: u32,
    /// Pressure levels; more than 100 are levels of the model
    #[arg(long, default_value_t = 10, value_parser = counts(1_000_000))]
    levels: u32,
    /// Parameters
    #[arg(long, default_value_t = 10, value_parser = counts(1_000_000))]
    params: u32,
    /// Bytes of each payload
    #[arg(long, value_name = "SIZE", value_parser = payload_bytes, default_value = "804KiB")]
    size: u64,
}

/// Processes of one kind: as many as a pool has clients.
pub(crate) const PROCESSES_MAX: u32 = 4096;
/// Bytes of a payload, as in the limits of a pool.
const PAYLOAD_BYTES_MAX: u64 = 1 << 40;

/// Parses a number up to a limit: memory and processes are taken for it.
pub(crate) fn counts(most: u32) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=i64::from(most))
}

fn payload_bytes(text: &str) -> std::result::Result<u64, String> {
    let bytes = size::parse_bytes(text)?;
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

impl FieldArguments {
    pub(crate) fn space(&self) -> LoadSpace {
        LoadSpace {
            members: self.members,
            steps: self.steps,
            levels: self.levels,
            params: self.params,
        }
    }
}

/// One process of a load; started by `junctura load`, with its plan on standard input.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadWorkerArguments {}

/// Runs a load and prints its figures. `program` starts the processes of the load. Blocks until they have ended.
///
/// # Errors
/// Those of the pool or store; `Corrupt` where objects were lost or damaged; `InvalidArgument` for options that contradict each other.
pub fn run(arguments: &LoadCommandArguments, program: &ProgramWords) -> Result<()> {
    match &arguments.command {
        LoadCommand::Handover(arguments) => handover::run(arguments, program),
        LoadCommand::Pool(arguments) => pool::run(arguments, program),
        LoadCommand::Store(arguments) => store::run(&StoreLoadArguments {
            program: program.clone(),
            ..arguments.clone()
        }),
        LoadCommand::Worker(LoadWorkerArguments {}) => pool::work(),
        LoadCommand::Echo(arguments) => handover::work(arguments),
    }
}
