//! `junctura pool health` reports whether a pool's server works, for service managers.

use std::time::Duration;

use clap::Args;
use junctura::{BoardState, Code, Error, Pool, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::{Value, json};

use crate::absent::open_served;
use crate::pool::beside::within;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool health --pool unix:model            ready: the server answers and takes objects
  junctura pool health --pool unix:model --live     alive: the server answers, also while it drains
  junctura pool health --json | jq -e .healthy";

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
    /// Print JSON, also for a pool that is not healthy
    #[arg(long)]
    json: bool,
    /// Maximum wait for the connection and the answer
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "3s")]
    timeout: Duration,
}

/// Runs the command.
pub(crate) fn run(arguments: &HealthArguments) -> Result<()> {
    let mut state = None;
    let outcome = arguments.check(&mut state);
    let mut out = StandardOutput::new();
    if arguments.json {
        let failed = outcome.as_ref().err();
        out.json(&json!({
            "pool": arguments.pool.pool,
            "healthy": failed.is_none(),
            "state": state.map(BoardState::name),
            "code": failed.map(|error| error.code().name()),
            "cause": failed.map(Error::cause),
        }))?;
    } else if let (Ok(()), Some(state)) = (&outcome, state) {
        writeln!(out, "{}", state.name())?;
    }
    out.flush()?;
    outcome
}

impl HealthArguments {
    /// Asks the server, and notes its state.
    fn check(&self, state: &mut Option<BoardState>) -> Result<()> {
        let url = self.pool.pool.as_str();
        let builder = self.pool.reader("junctura pool health").visitor(true);
        let (builder, of) = (InterruptFlag::install()?.watch(builder), url.to_owned());
        let asked = within(self.timeout, move || state_of(&open_served(&of, || builder.open())?))?;
        *state = asked;
        match asked {
            None => {
                let cause = format!("the server does not answer within {:?}", self.timeout);
                Err(Error::new(Code::Timeout, url, cause))
            }
            Some(BoardState::Serving) => Ok(()),
            Some(_) if self.live => Ok(()),
            Some(state) => {
                let cause = format!("the server is {}", state.name());
                Err(Error::new(Code::Conflict, url, cause))
            }
        }
    }
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
