//! `junctura cp` copies objects from one pool to another, unchanged.
//!
//! ```text
//!  FROM --follow, a window of objects--> held here --one copy, into TO's own memory--> acknowledged --> released
//! ```
//! No payload is buffered in this process: it is copied from the pages of one pool to those of the other. An object is
//! released in FROM when TO has acknowledged it, so unfinished objects of a copy in a group are redelivered to the next member.

mod copier;
mod pace;

use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, FollowOptions, Item, ListOptions, Pool, Result, Retention};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::progress;
use junctura_terminal::size;
use serde_json::Value;

use crate::absent::open_served;
use crate::attributes::{about_selector, selector, selector_of_present};
use crate::url::{ClientArguments, builder, open_noted};
use copier::{CopyNotice, PoolCopier};
use pace::ByteRate;

const EXAMPLES: &str = "Examples:
  junctura cp unix:model unix:archive 'step<24'             existing objects
  junctura cp unix:model unix:viewer param=t --follow       existing objects, then all new ones, until Ctrl-C
  junctura cp unix:model unix:viewer '*' --follow --rate 50MiB
  junctura cp unix:model unix:products '*' --follow --group products --keep-going
What TO has already is skipped where key, attributes and payload are the same, and is an error where they differ.";

/// Copy objects from one pool into another
///
/// Without --follow: the objects that exist, and those that become visible until the copy has caught up with FROM. Copies keep
/// attributes and schema, which TO must have, and get versions of TO. Their retention is that of TO's schema, or --retention. The
/// command is a normal reader of FROM. If the schema supersedes older versions, each copy is a version.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CpArguments {
    /// Source pool
    #[arg(value_name = "FROM")]
    from: String,
    /// Target pool
    #[arg(value_name = "TO")]
    to: String,
    /// Selects objects: all selectors must match; '*' means all objects
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    client: ClientArguments,
    /// Continue with new objects, until Ctrl-C, --count, or the end of FROM's server
    #[arg(long)]
    follow: bool,
    /// Stop after this many objects of FROM
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Limit of the throughput, in bytes per second
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<u64>,
    /// Receive a share of this group, which is created if it does not exist; objects of a copy that crashes are redelivered
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Retention of the copies (default: that of TO's schema)
    #[arg(long, visible_alias = "retain", value_name = "withdrawn|archived|released:N|released_by:NAME,...|TIME", value_parser = retention)]
    retention: Option<Retention>,
    /// Maximum number of objects in flight
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Maximum wait for memory when TO is full
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = size::parse_duration)]
    timeout: Duration,
    /// Continue after an object that TO refuses; the exit status still reports it
    #[arg(long)]
    keep_going: bool,
    /// Print both versions and the key of each object once TO has it
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON: a line for each object, then a summary
    #[arg(long)]
    json: bool,
    /// Print no summary
    #[arg(short, long, conflicts_with_all = ["json", "verbose"])]
    quiet: bool,
}

fn rate(text: &str) -> std::result::Result<u64, String> {
    match size::parse_bytes(text)? {
        0 => Err("more than nothing a second".to_owned()),
        bytes => Ok(bytes),
    }
}

fn retention(text: &str) -> std::result::Result<Retention, String> {
    text.parse().map_err(|error: Error| error.cause().to_owned())
}

/// Copies.
pub(crate) fn run(arguments: &CpArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let name = arguments.client.or("junctura cp");
    // A server that is started here has no objects; starting one would hide a mistyped name.
    let from = interrupt.watch(Pool::builder().url(&arguments.from).name(&name));
    let from = open_served(&arguments.from, || from.open())?;
    let to = builder(&arguments.to)
        .name(&name)
        .offer_timeout(Some(arguments.timeout));
    let to = open_noted(interrupt.watch(to))?;
    if is_same(&from, &to)? {
        let cause = "both are the same pool; name another one as the target";
        return Err(Error::new(
            Code::InvalidArgument,
            format!("{} {}", arguments.from, arguments.to),
            cause,
        ));
    }
    let selector = if arguments.follow || arguments.count.is_some() {
        selector(&arguments.selectors, &from)?
    } else {
        selector_of_present(&arguments.selectors, &from)?
    };
    let told = match (arguments.verbose, arguments.json) {
        (_, true) => CopyNotice::Json,
        (true, _) => CopyNotice::Lines,
        _ => CopyNotice::Nothing,
    };
    let mut copier = PoolCopier::new(&from, &to, arguments.retention.clone(), arguments.window as usize, told)?;
    copier.keep_going(arguments.keep_going);
    if progress::is_watched() && !arguments.follow && arguments.count.is_none() {
        copier.expect(total_bytes(&from, &selector)?);
    }
    let outcome = arguments.copy_all(&from, &selector, &interrupt, &mut copier);
    copier.finish(outcome, !arguments.quiet)
}

impl CpArguments {
    fn copy_all(
        &self,
        from: &Pool,
        selector: &str,
        interrupt: &InterruptFlag,
        copier: &mut PoolCopier<'_>,
    ) -> Result<()> {
        let options = FollowOptions {
            window: Some(self.window),
            until_live: !self.follow,
            group: self.group.as_deref().map(Into::into),
            ..FollowOptions::default()
        };
        let mut follow = about_selector(from.follow_with(selector, options), selector)?;
        let mut pace = self.rate.map(ByteRate::new);
        while self.count.is_none_or(|count| copier.taken() < count) {
            interrupt.check()?;
            let next = match follow.try_next() {
                Ok(None) if !follow.is_over() => {
                    // Received objects are acknowledged and released before a wait: FROM may need their memory.
                    copier.flush()?;
                    follow.next_item()
                }
                next => next,
            };
            let item = match next {
                // A group would redeliver it here.
                Err(error) if self.group.is_none() && copier.passes_over(&error) => continue,
                next => next?,
            };
            match item {
                Some(Item::Object(object)) => {
                    if let Some(pace) = &mut pace {
                        pace.wait(object.payload().len() as u64, &mut || {
                            copier.flush()?;
                            interrupt.check()
                        })?;
                    }
                    copier.copy(object)?;
                }
                Some(Item::Gap(gap)) => copier.miss(&gap),
                Some(Item::Live) => {}
                None if self.follow => {
                    let cause = "the pool that is copied from has ended";
                    return Err(Error::new(Code::Closed, from.url(), cause));
                }
                None => break,
            }
        }
        Ok(())
    }
}

fn is_same(one: &Pool, other: &Pool) -> Result<bool> {
    let server = |pool: &Pool| -> Result<(u64, Value)> {
        let stat: Value = serde_json::from_str(&pool.stat()?)
            .map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
        Ok((pool.incarnation()?, stat["server"]["pid"].clone()))
    };
    Ok(one.url() == other.url() || server(one)? == server(other)?)
}

fn total_bytes(pool: &Pool, selector: &str) -> Result<u64> {
    let mut bytes = 0;
    for page in about_selector(pool.list_with(selector, ListOptions::default()), selector)? {
        bytes += about_selector(page, selector)?
            .iter()
            .map(junctura::Entry::bytes)
            .sum::<u64>();
    }
    Ok(bytes)
}
