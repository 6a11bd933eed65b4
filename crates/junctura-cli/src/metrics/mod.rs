//! `junctura metrics` prints the numbers of a pool as metrics; `junctura pool serve --metrics` serves them, and
//! `--metrics-textfile` writes them to a file.
//!
//! ```text
//!  server --> board --> snapshot --> families --> OpenMetrics text --> standard output, HTTP, a file
//!             (shared memory: the deciding thread of the server does nothing for it)
//! ```

pub(crate) mod families;
mod http;
mod process;
pub(crate) mod serving;
mod table;
mod text;
mod textfile;

use clap::Args;
use junctura::Result;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;

use crate::absent::open_served;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura metrics
  junctura metrics --detailed | grep junctura_edge_objects
  junctura metrics --pool unix:model > /var/lib/node_exporter/junctura.prom";

/// Print the numbers of a pool as metrics for Prometheus
///
/// The text has the format `OpenMetrics`. `junctura pool serve --metrics 127.0.0.1:9464` serves the same text over HTTP, and
/// `--metrics-textfile FILE` writes it every 15 s. The pool is on this machine; its server does nothing for it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MetricsArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Print all names of the board, and the deliveries between components: thousands of series
    #[arg(long)]
    detailed: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &MetricsArguments) -> Result<()> {
    let builder = arguments.pool.reader("junctura metrics").visitor(true);
    let pool = open_served(&arguments.pool.pool, || InterruptFlag::install()?.watch(builder).open())?;
    let board = pool.board()?;
    let mut out = StandardOutput::new();
    let names = if arguments.detailed {
        families::ShownNames::Detailed
    } else {
        families::ShownNames::All
    };
    write!(out, "{}", families::metrics_text(&board, names))?;
    out.flush()
}
