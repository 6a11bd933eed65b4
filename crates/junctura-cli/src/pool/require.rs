//! `junctura pool require` and `junctura pool retract` make and end named requirements, which retain objects for later readers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use junctura::{Code, Error, OnFull, Pool, RequireOptions, Result, Versions};
use junctura_model::requirements::{self, WrittenRequirement};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::{about_selector, selector};
use crate::url::PoolArguments;

const REQUIRE_EXAMPLES: &str = "Examples:
  junctura pool require param=t/u 'levelist>=500' --name products --ttl 12h
  junctura pool require param=t --name viewer --versions newest --on-full break --quota 2GiB
  junctura pool require param=t/u --name workers --group
  junctura pool require -f requirements.yaml

A file of requirements:
  requirements:
    products:
      selector: param=t/u,levelist>=500
      time_to_live: 12h
    viewer: {selector: param=t, versions: newest, on_full: break, quota: 2GiB}
    workers: {selector: param=t, group: true}";

const RETRACT_EXAMPLES: &str = "Examples:
  junctura pool retract products
  junctura pool retract viewer archive";

/// Retain matching objects under a name until they were received
///
/// Each object that matches from now on stays in the pool until a reader of the requirement with this name has received and released
/// it. The requirement outlives this command: it ends when it is retracted, or when no client has used it for its time to live.
/// Repeating the command with the same name and terms changes nothing; other terms are refused. If the readers of a requirement
/// release nothing for --stuck-after while other clients wait for memory, or with --on-full break at its quota, the requirement is
/// broken: its readers get a gap, and `watch` reports it.
#[derive(Args, Debug)]
#[command(after_help = REQUIRE_EXAMPLES, group(ArgGroup::new("what").required(true)),
    mut_arg("client_name", |arg| arg.visible_alias(None)))]
pub(crate) struct RequireArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Selects objects to retain: all selectors must match; '*' means all objects
    #[arg(value_name = "SELECTOR", group = "what", requires = "name")]
    selectors: Vec<String>,
    /// The name: ASCII letters, digits and ._+:-/
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    name: Option<String>,
    /// Time after which an unused requirement ends (default: no limit)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, conflicts_with = "file")]
    ttl: Option<Duration>,
    /// Versions of each object to retain
    #[arg(long, value_name = "WHICH", default_value = "all", conflicts_with = "file")]
    versions: RequirementChoice,
    /// Behavior when memory for its objects is full
    #[arg(long, value_name = "WHAT", default_value = "wait", conflicts_with = "file")]
    on_full: FullAction,
    /// With --on-full break: maximum bytes that only this requirement retains (default: no limit until memory is full)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, conflicts_with = "file")]
    quota: Option<u64>,
    /// Time without a release, while other clients wait for memory, after which the requirement is broken (default: that of the
    /// server, usually 60s)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, conflicts_with = "file")]
    stuck_after: Option<Duration>,
    /// Make a consumer group: each object is delivered to one of the members that follow by this name
    #[arg(long, conflicts_with = "file")]
    group: bool,
    /// Read requirements from a YAML file
    #[arg(short, long, value_name = "FILE", group = "what")]
    file: Option<PathBuf>,
    /// Print a JSON line for each requirement
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RequirementChoice {
    /// Every version
    All,
    /// The newest version
    Newest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FullAction {
    /// Offers wait for its readers
    Wait,
    /// The requirement is broken: its readers get a gap
    Break,
}

/// End requirements by name
///
/// Objects that only these requirements retained may be removed. Their readers get an error.
#[derive(Args, Debug)]
#[command(after_help = RETRACT_EXAMPLES)]
pub(crate) struct RetractArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// The names, as `junctura pool stat` shows them
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print a JSON line for each requirement
    #[arg(long)]
    json: bool,
}

/// Runs `require`.
pub(crate) fn require(arguments: &RequireArguments) -> Result<()> {
    let written = arguments.file.as_deref().map(read).transpose()?;
    let pool = arguments
        .pool
        .connect(&InterruptFlag::install()?, "junctura pool require")?;
    let mut out = StandardOutput::new();
    match (written, &arguments.file) {
        (Some(written), Some(file)) => {
            for one in &written {
                let required = terms(one).and_then(|terms| pool.require_with(&one.selector, terms));
                about_selector(required, &one.selector)
                    .map_err(|error| located(&error, &format!("{} line {}", file.display(), one.line)))?;
                arguments.say(&mut out, &one.name, &one.selector)?;
            }
        }
        _ => arguments.require_one(&pool, &mut out)?,
    }
    out.flush()
}

impl RequireArguments {
    fn require_one(&self, pool: &Pool, out: &mut StandardOutput) -> Result<()> {
        let selector = selector(&self.selectors, pool)?;
        let options = RequireOptions {
            versions: match self.versions {
                RequirementChoice::All => Versions::All,
                RequirementChoice::Newest => Versions::Newest,
            },
            name: self.name.clone(),
            time_to_live: self.ttl,
            on_full: on_full(self.on_full == FullAction::Break, self.quota)?,
            stuck_after: self.stuck_after,
            group: self.group,
        };
        about_selector(pool.require_with(&selector, options), &selector)?;
        self.say(out, self.name.as_deref().unwrap_or_default(), &selector)
    }

    fn say(&self, out: &mut StandardOutput, name: &str, selector: &str) -> Result<()> {
        if self.json {
            out.json(&json!({"name": name, "selector": selector}))
        } else {
            writeln!(out, "{name} requires {selector}")
        }
    }
}

/// Reads a file of requirements.
pub(crate) fn read(path: &Path) -> Result<Vec<WrittenRequirement>> {
    let text = junctura::binding::read_text(path)?;
    requirements::parse_yaml(&text).map_err(|error| located(&error, &path.display().to_string()))
}

fn on_full(breaks: bool, quota: Option<u64>) -> Result<OnFull> {
    match (breaks, quota) {
        (true, quota) => Ok(OnFull::Break { quota }),
        (false, None) => Ok(OnFull::Wait),
        (false, Some(_)) => {
            let cause = "only a requirement that breaks on full has one";
            Err(Error::new(Code::InvalidArgument, "quota", cause))
        }
    }
}

fn terms(written: &WrittenRequirement) -> Result<RequireOptions> {
    Ok(RequireOptions {
        versions: if written.newest_only {
            Versions::Newest
        } else {
            Versions::All
        },
        name: Some(written.name.clone()),
        time_to_live: written.time_to_live_ns.map(Duration::from_nanos),
        group: written.is_group,
        on_full: on_full(written.breaks_on_full, written.quota_bytes)?,
        stuck_after: written.stuck_after_ns.map(Duration::from_nanos),
    })
}

/// Returns an error about a part of a file.
fn located(error: &Error, place: &str) -> Error {
    Error::new(error.code(), format!("{place}: {}", error.subject()), error.cause())
}

/// Runs `retract`.
pub(crate) fn retract(arguments: &RetractArguments) -> Result<()> {
    let pool = arguments
        .pool
        .connect_to_read(&InterruptFlag::install()?, "junctura pool retract")?;
    let mut out = StandardOutput::new();
    for name in &arguments.names {
        let owed = pool.retract(name)?;
        if arguments.json {
            out.json(&json!({"name": name, "owed": owed}))?;
        } else {
            let s = if owed == 1 { "" } else { "s" };
            writeln!(out, "{name} retracted; it was still owed {owed} object{s}")?;
        }
    }
    out.flush()
}
