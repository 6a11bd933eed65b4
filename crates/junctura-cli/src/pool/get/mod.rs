//! `junctura get` writes payloads of the pool to files or a pipe: one object, or all that match.

pub(crate) mod got;
mod sink;
pub(crate) mod taker;
mod template;

use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use junctura::{Code, Error, FollowOptions, Item, Object, Pool, Result, Target};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::size;

use crate::attributes::{AttributePair, about_selector, given, pair, selector, why_nothing};
use crate::url::{BehindArguments, PoolArguments};
use taker::{IntoArguments, PayloadTaker};

const EXAMPLES: &str = "Examples:
  junctura get param=t levelist=500 step=6 number=3 -o t500.grib   one field (the newest that matches)
  junctura get --all param=t/u/v 'levelist>=500' -o winds.grib     all that match, in one file
  junctura get --all param=t -o fields/ --template '{step}/{number}{ext}'
  junctura get --all --group products -o fields/                   a share of the objects that a group is owed
  junctura get --all --requirement archive -o fields/              what a requirement is owed
  junctura get name=plume --wait > plume.png                       wait until it exists
  junctura get --all param=msl --count 50 --timeout 10m -o -       existing objects, then new ones
  junctura get --follow param=t -o fields/                         existing objects, then all new ones, until Ctrl-C
  junctura get --all --behind /data/archive param=t -o t.grib      also objects that only the store still has
  junctura get --schema free --key name=plume                      by key: the error states why an object was removed
A template may use every attribute, and {key}, {hash}, {version} and {ext} (.grib for GRIB).";

/// Get payloads from the pool
///
/// Without --all: the newest matching object, at once. If none matches, the command fails with exit status 3, unless it waits
/// (--wait, --timeout). With --all: every object that matches now, ordered by key, then those that became visible during the command. All
/// selectors must match. A file appears complete or not at all.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, group(ArgGroup::new("what").required(true).multiple(true)))]
pub(crate) struct GetArguments {
    #[command(flatten)]
    pool: PoolArguments,
    #[command(flatten)]
    behind: BehindArguments,
    /// Selects objects: param=t, step=0/to/24/by/6, 'levelist>=500', or a key as `ls --json` prints it
    #[arg(value_name = "SELECTOR", group = "what")]
    selectors: Vec<String>,
    /// Get the object with this key
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, group = "what", num_args = 1..,
        conflicts_with_all = ["selectors", "all"])]
    key: Vec<AttributePair>,
    /// The schema of the key (default: the pool's first)
    #[arg(long, value_name = "NAME", requires = "key")]
    schema: Option<String>,
    /// Get every object that matches
    #[arg(long, group = "what")]
    all: bool,
    /// Get every matching object, then each new one immediately, until Ctrl-C, --count or --timeout. Missed objects are reported
    /// immediately
    #[arg(long, group = "what", conflicts_with_all = ["all", "wait", "key"])]
    follow: bool,
    /// Continue with new objects until this many were received
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Order existing objects by this attribute instead of by key
    #[arg(long, value_name = "ATTRIBUTE")]
    sort: Option<String>,
    /// Receive a share of this group. With a selector the group is created if it does not exist. An object is released when it is
    /// written; objects of a member that crashes are redelivered
    #[arg(long, value_name = "NAME", conflicts_with = "sort")]
    group: Option<String>,
    /// Receive the objects that this requirement is owed, as its reader. An object is released when it is written
    #[arg(long, value_name = "NAME", conflicts_with_all = ["selectors", "sort", "group"])]
    requirement: Option<String>,
    #[command(flatten)]
    into: IntoArguments,
    /// Wait until an object matches, also for the server of the pool; at most --timeout
    #[arg(long, conflicts_with = "all")]
    wait: bool,
    /// Wait, but at most this long: for the server of the pool, and for the first object, or for --count objects. Then the command fails
    /// with exit status 4. With --follow and without --count the command ends after this time, with exit status 0
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
}

/// Gets.
pub(crate) fn run(arguments: &GetArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    arguments.check()?;
    let mut taker = PayloadTaker::open(&arguments.into, arguments.follow)?;
    let deadline = arguments.deadline();
    let pool = match arguments.connect(&interrupt, deadline) {
        Err(error) if error.code() == Code::Timeout && arguments.is_good_at_its_deadline() => return taker.finish(),
        pool => pool?,
    };
    if arguments.all || arguments.follow {
        match arguments.get_all(&pool, deadline, &interrupt, &mut taker) {
            Err(error) if arguments.ends_with_the_pool(&error) => {}
            outcome => outcome?,
        }
    } else {
        taker.take(&arguments.get_one(&pool, deadline)?)?;
    }
    taker.finish()
}

impl GetArguments {
    fn check(&self) -> Result<()> {
        let wrong = |subject: &str, cause: &str| Err(Error::new(Code::InvalidArgument, subject, cause));
        if !self.all && !self.follow {
            let of_many = [
                ("--count", self.count.is_some()),
                ("--sort", self.sort.is_some()),
                ("--group", self.group.is_some()),
                ("--requirement", self.requirement.is_some()),
            ];
            if let Some((name, _)) = of_many.iter().find(|(_, given)| *given) {
                return wrong(name, "it needs --all or --follow");
            }
        }
        if self.is_shared() && self.into.is_one_file() {
            let name = if self.group.is_some() {
                "--group"
            } else {
                "--requirement"
            };
            let cause =
                "objects are released one by one, and one file is complete only at the end: name a folder, or -";
            return wrong(name, cause);
        }
        if self.follow && self.count.is_none() && self.into.is_one_file() {
            return wrong(
                "--follow",
                "one file would never be whole: name a folder, -, or how many with --count",
            );
        }
        Ok(())
    }

    /// Whether a requirement or group is owed the objects: each is released when it is written.
    fn is_shared(&self) -> bool {
        self.group.is_some() || self.requirement.is_some()
    }

    fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// Whether the command succeeds at its deadline.
    fn is_good_at_its_deadline(&self) -> bool {
        self.follow && self.count.is_none()
    }

    /// Whether the command succeeds because the server was stopped in order.
    fn ends_with_the_pool(&self, error: &Error) -> bool {
        let ends = error.code() == Code::Closed && self.is_good_at_its_deadline();
        if ends {
            say!("junctura: {}: {}", error.subject(), error.cause());
        }
        ends
    }

    /// Connects; a command that waits for objects waits for the server, too.
    fn connect(&self, interrupt: &InterruptFlag, deadline: Option<Instant>) -> Result<Pool> {
        const NAME: &str = "junctura get";
        if self.wait || self.follow || self.count.is_some() || deadline.is_some() {
            self.pool.connect_and_wait(interrupt, &self.behind, NAME, deadline)
        } else {
            self.pool.connect_with(interrupt, &self.behind, NAME)
        }
    }

    fn get_one(&self, pool: &Pool, deadline: Option<Instant>) -> Result<Object> {
        let timeout = match deadline {
            // With a timeout of 0 a missing object is NotFound, with any other Timeout.
            Some(_) if self.timeout == Some(Duration::ZERO) => Some(Duration::ZERO),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                Some(left.max(Duration::from_nanos(1)))
            }
            None if self.wait || self.timeout.is_some() => None,
            None => Some(Duration::ZERO),
        };
        if self.key.is_empty() {
            let selector = selector(&self.selectors, pool)?;
            let got = about_selector(pool.demand(selector.as_str(), timeout), &selector);
            return got.map_err(|error| not_there(pool, &selector, error));
        }
        let key = Target::key(given(&self.key));
        match &self.schema {
            Some(name) => pool.demand(key.in_schema(name), timeout),
            None => pool.demand(key, timeout),
        }
    }

    fn get_all(
        &self,
        pool: &Pool,
        deadline: Option<Instant>,
        interrupt: &InterruptFlag,
        taker: &mut PayloadTaker,
    ) -> Result<()> {
        let selector = selector(&self.selectors, pool)?;
        let options = FollowOptions {
            until_live: !self.follow && self.count.is_none(),
            order_by: self.sort.clone(),
            requirement: self.requirement.clone(),
            ..FollowOptions::default()
        };
        let joins = self.selectors.is_empty() && self.requirement.is_none();
        let options = FollowOptions {
            group: self.group.as_deref().filter(|_| !joins).map(Into::into),
            join: self.group.clone().filter(|_| joins),
            ..options
        };
        let mut follow = about_selector(pool.follow_with(&selector, options), &selector)?;
        if self.is_shared() {
            taker.leave_to_others();
        }
        while self.count.is_none_or(|count| taker.objects() < count) {
            interrupt.check()?;
            let next = match (follow.try_next(), deadline) {
                (Err(error), _) if taker.passes_over(&error) => continue,
                (Err(error), _) => return Err(error),
                (Ok(Some(item)), _) => Some(item),
                (Ok(None), _) if follow.is_over() => None,
                (Ok(None), _) => {
                    // Output is flushed before a wait.
                    taker.flush()?;
                    let next = match deadline {
                        Some(deadline) => follow.next_within(deadline.saturating_duration_since(Instant::now())),
                        None => follow.next_item(),
                    };
                    match next {
                        Err(error) if error.code() == Code::Timeout && self.is_good_at_its_deadline() => None,
                        Err(error) if taker.passes_over(&error) => continue,
                        next => next.map_err(|error| self.too_late(error, taker.objects()))?,
                    }
                }
            };
            match next {
                Some(Item::Object(object)) => {
                    let outcome = taker.take(&object);
                    let written = outcome.and_then(|()| if self.is_shared() { taker.flush() } else { Ok(()) });
                    if let Err(error) = written {
                        // Another member may be able to write it.
                        object.give_back()?;
                        return Err(error);
                    }
                }
                Some(Item::Gap(gap)) => taker.miss(&gap),
                Some(Item::Live) => {}
                None => break,
            }
        }
        // The other members of the group may have received everything, and a requirement may be owed nothing.
        let is_enough = self.follow || self.count == Some(0) || self.is_shared();
        if taker.objects() == 0 && !taker.has_missed() && !taker.has_unwritten() && !is_enough {
            let why = why_nothing(pool, &selector, "`junctura ls --tree` shows what the pool has");
            return Err(Error::new(Code::NotFound, selector, format!("nothing matches; {why}")));
        }
        Ok(())
    }

    fn too_late(&self, error: Error, objects: u64) -> Error {
        let (Code::Timeout, Some(count)) = (error.code(), self.count) else {
            return error;
        };
        Error::new(
            Code::Timeout,
            self.selectors.join(","),
            format!("{objects} of {count} objects arrived in time"),
        )
    }
}

/// The error for a selector that matches nothing now.
fn not_there(pool: &Pool, selector: &str, error: Error) -> Error {
    if error.code() != Code::NotFound {
        return error;
    }
    let why = why_nothing(pool, selector, "--wait waits for one");
    let cause = format!("no object in the pool matches now; {why}");
    Error::new(Code::NotFound, selector, cause)
}
