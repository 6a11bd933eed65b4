//! `junctura pool health` reports whether a pool's server works, for service managers.

use std::time::Duration;

use clap::Args;
use junctura::{BoardState, Code, Error, Pool, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::Value;

use crate::absent::open_served;
use crate::pool::beside::within;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool health --pool unix:model            ready: the server answers and takes objects
  junctura pool health --pool unix:model --live     alive: the server answers, also while it drains";

/// Check that the pool is served and its server answers
///
/// The status is 0 if the server answers within --timeout and takes objects, 1 if it drains (with --live: 0), 3 or 5 if there is none,
/// and 4 if it does not answer: its deciding thread hangs or is stopped.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HealthArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// A server that drains is healthy, too
    #[arg(long)]
    live: bool,
    /// Maximum wait for the answer
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "3s")]
    timeout: Duration,
}

/// Runs the command.
pub(crate) fn run(arguments: &HealthArguments) -> Result<()> {
    let builder = arguments.pool.reader("junctura pool health").visitor(true);
    let url = arguments.pool.pool.clone();
    let builder = InterruptFlag::install()?.watch(builder);
    let state = within(arguments.timeout, move || {
        let pool = open_served(&url, || builder.open())?;
        state_of(&pool)
    })?;
    let Some(state) = state else {
        let cause = format!("the server does not answer within {:?}", arguments.timeout);
        return Err(Error::new(Code::Timeout, arguments.pool.pool.as_str(), cause));
    };
    if state != BoardState::Serving && !arguments.live {
        let cause = format!("the server is {}", state.name());
        return Err(Error::new(Code::Conflict, arguments.pool.pool.as_str(), cause));
    }
    let mut out = StandardOutput::new();
    writeln!(out, "{}", state.name())?;
    out.flush()
}

/// Returns what the server does, as its board shows; over a network, as its counters show.
fn state_of(pool: &Pool) -> Result<BoardState> {
    match pool.board() {
        Ok(board) => Ok(board.head().state),
        Err(error) if error.code() == Code::Unsupported => {
            let stat: Value = serde_json::from_str(&pool.stat()?)
                .map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
            Ok(if stat["draining"].is_object() {
                BoardState::Draining
            } else {
                BoardState::Serving
            })
        }
        Err(error) => Err(error),
    }
}
