//! `junctura top` shows what a pool does, once a second: from the board, without a request.
//!
//! ```text
//!  board --two snapshots--> frame (rates) --> findings, tables --> screen, or text and JSON (--once)
//!                                                    `e`: `junctura explain` as another process
//! ```
//!
//! A server that hangs answers no request. Its board stays readable, and a new `top` finds it among the descriptors of the server's process.

mod findings;
mod frame;
mod once;
mod screen;
mod tables;

use std::time::Duration;

use clap::{Args, ValueEnum};
use junctura::{Code, Error, PoolBoard, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::program::ProgramWords;
use junctura_terminal::size;

use crate::absent::open_served;
use crate::pool::beside::within;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura top --pool unix:model
  junctura top --screen requirements --sort owed
  junctura top --once                                   numbers of one second, as text
  junctura top --once --json | jq .components";

/// How long a server may take to answer; after that, its board is looked for without it.
const ANSWER: Duration = Duration::from_secs(2);
/// The shortest time between two looks.
const DELAY_MIN: Duration = Duration::from_millis(100);

/// Show the activity of a pool once a second
///
/// Shows rates, memory, and warnings; and tables of components (clients whose names differ in numbers only), named
/// requirements, clients, datasets, and clients that wait. The numbers are those of the board: the server does nothing for them, and
/// they are shown when it hangs. A server that takes the place of one that has ended is shown as soon as it answers. The pool is on this
/// machine. Press ? for the keys.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Time between two looks
    #[arg(short, long, value_name = "TIME", value_parser = size::parse_duration, default_value = "1s")]
    delay: Duration,
    /// The table to show first; with --once, the only one
    #[arg(long, value_name = "TABLE")]
    screen: Option<TopScreen>,
    /// Sort by this column, as --json names it; texts in ascending and numbers in descending order
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Show only rows that contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Print the numbers of one --delay, and exit
    #[arg(long)]
    once: bool,
    /// Print JSON
    #[arg(long, requires = "once")]
    json: bool,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopScreen {
    Components,
    Requirements,
    Clients,
    Datasets,
    /// Clients with requests that have not ended
    Waits,
}

impl TopScreen {
    const ALL: [Self; 5] = [
        Self::Components,
        Self::Requirements,
        Self::Clients,
        Self::Datasets,
        Self::Waits,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Components => "components",
            Self::Requirements => "requirements",
            Self::Clients => "clients",
            Self::Datasets => "datasets",
            Self::Waits => "waits",
        }
    }
}

/// Which rows are shown, and in which order.
#[derive(Clone, Debug, Default)]
struct RowOrder {
    /// The column, by its name in JSON; none: the order of the board.
    column: Option<String>,
    filter: String,
}

/// A finding in the numbers of a board.
pub(crate) struct PoolAlarm {
    /// A stable code.
    pub(crate) code: &'static str,
    pub(crate) is_failure: bool,
    pub(crate) text: String,
}

/// Returns what needs attention, from two looks at a board.
pub(crate) fn alarms(board: &PoolBoard) -> Vec<PoolAlarm> {
    let look = frame::BoardLook::new(board);
    frame::pause(DELAY_MIN);
    let found = findings::findings(&look.frame(board, ""));
    let alarms = found.into_iter().map(|finding| PoolAlarm {
        code: finding.code,
        is_failure: finding.level == findings::AlarmLevel::Fail,
        text: finding.text,
    });
    alarms.collect()
}

/// Runs the command. `program` starts `junctura explain`.
pub(crate) fn run(arguments: &TopArguments, program: &ProgramWords) -> Result<()> {
    if arguments.delay < DELAY_MIN {
        let cause = format!("the time between two looks is at least {DELAY_MIN:?}");
        return Err(Error::new(Code::InvalidArgument, "--delay", cause));
    }
    if let Some(column) = &arguments.sort {
        tables::check_column(arguments.screen, column)?;
    }
    let order = RowOrder {
        column: arguments.sort.clone(),
        filter: arguments.filter.clone(),
    };
    if arguments.once {
        let interrupt = InterruptFlag::install()?;
        let board = board_of(&arguments.pool)?;
        let look = frame::BoardLook::new(&board);
        frame::pause(arguments.delay);
        interrupt.check()?;
        let frame = look.frame(&board, &arguments.pool.pool);
        let mut out = StandardOutput::new();
        if arguments.json {
            out.json(&once::document(&frame, arguments.screen, &order))?;
        } else {
            once::write(&frame, arguments.screen, &order, &mut out)?;
        }
        return out.flush();
    }
    show(arguments, order, program)
}

/// Returns the board of a pool's server.
///
/// # Errors
/// `NotFound` where `unix:NAME` has no server, and for a server that hangs and has no board.
fn board_of(pool: &PoolArguments) -> Result<PoolBoard> {
    let (url, builder) = (pool.pool.clone(), pool.reader("junctura top").visitor(true));
    let answered = within(ANSWER, move || open_served(&url, || builder.open())?.board())?;
    answered.map_or_else(|| PoolBoard::of_silent_server(&pool.pool), Ok)
}

fn show(arguments: &TopArguments, order: RowOrder, program: &ProgramWords) -> Result<()> {
    if !junctura_terminal::output::is_terminal() {
        let cause = "standard output is not a terminal; --once prints the numbers as text";
        return Err(Error::new(Code::InvalidArgument, "top", cause));
    }
    let source = screen::TopSource {
        board: board_of(&arguments.pool)?,
        pool: arguments.pool.clone(),
        delay: arguments.delay,
    };
    let first = arguments.screen.unwrap_or(TopScreen::Components);
    screen::show(&source, screen::TopView::new(first, order), program)
}
