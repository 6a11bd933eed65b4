//! `junctura store import` copies the contents of other libraries into a store.

mod fdb;
mod fields;
mod placing;
mod versions;

use clap::{Args, Subcommand};
use junctura::Result;
use junctura_terminal::program::ProgramWords;

const EXAMPLES: &str = "Examples:
  junctura store import fdb /fdb --store /data/archive --create             everything, under the schema of the FDB
  junctura store import fdb /fdb/config.yaml --store /data/archive class=od,date=20261120
  junctura store import fdb /fdb --store /data/archive --dry-run            what would be copied";

/// Copy the contents of other libraries into a store
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArguments {
    #[command(subcommand)]
    from: ImportSource,
}

#[derive(Debug, Subcommand)]
enum ImportSource {
    Fdb(fdb::FdbArguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &ImportArguments, program: &ProgramWords) -> Result<()> {
    match &arguments.from {
        ImportSource::Fdb(arguments) => fdb::run(arguments, program),
    }
}
