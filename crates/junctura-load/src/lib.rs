//! `junctura load` loads pools and stores from separate processes and measures them, and the cost of a hand-over on this machine.

mod handover;
mod history;
mod load;
mod messages;
mod pool;
mod process;
mod stamp;
mod store;

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
    #[arg(long, default_value_t = 10)]
    members: u32,
    /// Forecast steps, 6 hours apart
    #[arg(long, default_value_t = 10)]
    steps: u32,
    /// Pressure levels; more than 100 are levels of the model
    #[arg(long, default_value_t = 10)]
    levels: u32,
    /// Parameters
    #[arg(long, default_value_t = 10)]
    params: u32,
    /// Bytes of each payload
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, default_value = "804KiB")]
    size: u64,
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
