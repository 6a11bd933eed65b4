//! `junctura stop`: the server of a pool ends, in good order.

use std::time::Duration;

use clap::Args;
use junctura::{Code, Pool, Result};

use crate::size;
use crate::terminal::interrupt::InterruptFlag;
use crate::url::ClientArguments;

const EXAMPLES: &str = "Examples:
  junctura stop                                when all that was promised has been received
  junctura stop unix:mine --timeout 30s        but not later than this
  junctura stop --now";

/// Stop the server of a pool
///
/// It takes nothing new (no offers, no clients), and ends when everything that requirements are owed was received. What its
/// memory held is gone then. Waits for the end; Ctrl-C ends the waiting, but the server goes on to its end.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StopArguments {
    #[arg(
        help = "The pool: unix:NAME, unix:/path.sock or unix:@abstract",
        default_value = "unix:default",
        env = "JUNCTURA_POOL",
        value_name = "URL"
    )]
    pool: String,
    #[command(flatten)]
    client: ClientArguments,
    /// End it after this time anyway, and say what was left (exit status 4; default: as long as it takes)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    /// End it at once, and say what was left
    #[arg(long, conflicts_with = "timeout")]
    now: bool,
}

/// Stops.
pub(crate) fn run(arguments: &StopArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let builder = Pool::builder()
        .url(&arguments.pool)
        .name(arguments.client.or("junctura stop"))
        .visitor(true);
    let pool = interrupt.watch(builder).open()?;
    let timeout = if arguments.now {
        Some(Duration::ZERO)
    } else {
        arguments.timeout
    };
    match pool.stop(timeout) {
        Err(left) if arguments.now && left.code() == Code::Timeout => say!("junctura: {}", left.cause()),
        ended => ended?,
    }
    say!("junctura: {} has ended", pool.url());
    Ok(())
}
