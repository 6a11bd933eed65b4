//! `junctura pool wanted` reports whether any client wants an object, before it is computed.

use clap::Args;
use junctura::{Code, Error, Result, WantedOptions};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use serde_json::json;

use crate::attributes::{AttributePair, given, pair};
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool wanted --schema free name=plume
  junctura pool wanted --schema free name=plume --quiet && make plume.png";

/// Report whether any client wants an object, before it is computed
///
/// Counts the follows, requirements and waiting demands that would receive an object with these attributes if it were offered now.
/// The exit status is 0 if there are any, and 3 if there are none.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WantedArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Attributes of the object
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<AttributePair>,
    /// The schema of the object (default: the pool's first)
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// Print nothing if the object is wanted
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &WantedArguments) -> Result<()> {
    let pool = arguments
        .pool
        .connect_to_read(&InterruptFlag::install()?, "junctura pool wanted")?;
    let options = WantedOptions {
        schema: arguments.schema.as_deref(),
        ..WantedOptions::default()
    };
    let count = pool.wanted_with(given(&arguments.attributes), options)?;
    let mut out = StandardOutput::new();
    if arguments.json {
        out.json(&json!({"wanted": count}))?;
    } else if !arguments.quiet && count > 0 {
        writeln!(out, "wanted by {count}")?;
    }
    out.flush()?;
    match count {
        0 => Err(Error::new(Code::NotWanted, "", "no client wants it")),
        _ => Ok(()),
    }
}
