//! `junctura pool withdraw` and `junctura pool withdraw-all` remove objects by key or by selector.

use std::time::{Duration, Instant};

use clap::Args;
use junctura::{Code, Error, Pool, Result, Target, WithdrawOptions};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::{about_selector, given, note_unknown_in, pair, selector_of_present};
use crate::pool::explain::own::waits_of_withdrawals;
use crate::pool::patience::WaitReport;
use crate::pool::put::files::hint;
use crate::url::PoolArguments;

const WITHDRAW_EXAMPLES: &str = "Examples:
  junctura pool withdraw --schema free name=plume
  junctura pool withdraw \"$(junctura ls --json param=t step=6 number=3 | jq -r .key)\"
  junctura pool withdraw --force --schema free name=plume     do not wait for readers that are owed it";

const RETIRE_EXAMPLES: &str = "Examples:
  junctura pool withdraw-all class=rd expver=test
  junctura pool withdraw-all 'step<24' --timeout 10s
  junctura pool withdraw-all '*' --force              empty the pool
  junctura pool withdraw-all '*' --forget             run a model again that offers the same keys";

/// Options of both commands.
#[derive(Args, Debug)]
struct WithdrawMode {
    /// Maximum wait for the server and for requirements that are owed an object (then exit status 4; default: no limit)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, conflicts_with = "force")]
    timeout: Option<Duration>,
    /// Do not wait: readers that are owed an object get a gap
    #[arg(long)]
    force: bool,
    /// Free the keys at once, also those of objects that were removed before: they can be offered again
    #[arg(long)]
    forget: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Withdraw one object, by its key
///
/// Removes all versions of the object. Waits until every requirement that is owed the object has received it.
#[derive(Args, Debug)]
#[command(after_help = WITHDRAW_EXAMPLES)]
pub(crate) struct WithdrawArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// The attributes of the key, or the whole key as `ls --json` prints it
    #[arg(required = true, value_name = "NAME=VALUE|KEY")]
    key: Vec<String>,
    /// The schema of the key (default: the pool's first, or the first that knows the whole key)
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    #[command(flatten)]
    how: WithdrawMode,
}

/// Withdraw every matching object
///
/// Waits until every requirement that is owed one of the objects has received it.
#[derive(Args, Debug)]
#[command(after_help = RETIRE_EXAMPLES)]
pub(crate) struct WithdrawAllArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Selects objects: all selectors must match; '*' means all objects
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    how: WithdrawMode,
}

impl WithdrawMode {
    fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// Returns the options, with the time that is left.
    fn options(&self, deadline: Option<Instant>) -> WithdrawOptions {
        WithdrawOptions {
            timeout: deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            force: self.force,
            forget: self.forget,
        }
    }

    fn say(&self, what: &str, count: u64) -> Result<()> {
        let mut out = StandardOutput::new();
        if self.json {
            let what = if self.forget { "key" } else { what };
            out.json(&json!({format!("{what}s"): count}))?;
        } else if self.forget {
            let s = if count == 1 { "" } else { "s" };
            writeln!(out, "{count} key{s} free")?;
        } else {
            let s = if count == 1 { "" } else { "s" };
            writeln!(out, "{count} {what}{s} withdrawn")?;
        }
        out.flush()
    }
}

/// Withdraws one object.
pub(crate) fn withdraw(arguments: &WithdrawArguments) -> Result<()> {
    let deadline = arguments.how.deadline();
    let pool = arguments
        .pool
        .connect_by(&InterruptFlag::install()?, "junctura pool withdraw", deadline)?;
    let _waits = WaitReport::new(&pool, "pool withdraw", waits_of_withdrawals);
    let versions = arguments.withdraw(&pool, deadline)?;
    arguments.how.say("version", versions)
}

impl WithdrawArguments {
    fn withdraw(&self, pool: &Pool, deadline: Option<Instant>) -> Result<u64> {
        let in_schema = |target: Target<'_>| match &self.schema {
            Some(name) => pool.withdraw(target.in_schema(name), self.how.options(deadline)),
            None => pool.withdraw(target, self.how.options(deadline)),
        };
        if let [key] = self.key.as_slice()
            && key.starts_with('{')
        {
            return in_schema(Target::key_text(key));
        }
        let pairs = self
            .key
            .iter()
            .map(|text| pair(text))
            .collect::<std::result::Result<Vec<_>, _>>();
        let pairs = pairs.map_err(|cause| Error::new(Code::InvalidArgument, self.key.join(" "), cause))?;
        in_schema(Target::key(given(&pairs)))
            .map_err(|error| hint(&error, &pool.schemas().unwrap_or_default(), self.schema.is_some()))
    }
}

/// Withdraws all matching objects.
pub(crate) fn withdraw_all(arguments: &WithdrawAllArguments) -> Result<()> {
    let deadline = arguments.how.deadline();
    let pool = arguments
        .pool
        .connect_by(&InterruptFlag::install()?, "junctura pool withdraw-all", deadline)?;
    let selector = selector_of_present(&arguments.selectors, &pool)?;
    let _waits = WaitReport::new(&pool, "pool withdraw-all", waits_of_withdrawals);
    let objects = about_selector(pool.withdraw_all(&selector, arguments.how.options(deadline)), &selector)?;
    if objects == 0 {
        note_unknown_in(&pool, &selector)?;
    }
    arguments.how.say("object", objects)
}
