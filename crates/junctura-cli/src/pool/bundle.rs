//! `junctura pool bundle` opens, seals, aborts and shows bundles, objects that become visible together, by their paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use junctura::{Bundle, BundleEntry, BundleOptions, BundleState, Code, Described, Error, Pool, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::{Value, json};

use crate::attributes::{AttributePair, about_selector, given, pair, selector};
use crate::json;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool bundle open run/step=6 --members 400 --about step=6   before its producers start
  junctura put --bundle run/step=6 --members 400 part1.grib      some of its members
  junctura pool bundle list --tree                                    bundles and their missing members
  junctura pool bundle list step=6 --json                             by attributes of bundles
  junctura pool bundle abort run/step=6                               discard it
What nobody has open is aborted when its orphan timeout is over (a minute, unless the server or `open` says otherwise).";

/// Open, seal, abort and show bundles: objects that become visible together
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BundleArguments {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Subcommand, Debug)]
enum BundleCommand {
    Open(OpenBundle),
    /// Seal a bundle: it has all its members and becomes visible
    Seal(NamedBundle),
    /// Abort a bundle: its members are freed and never become visible
    Abort(NamedBundle),
    List(ListBundles),
    /// Show the state and the attributes of a bundle
    Show(NamedBundle),
}

/// Open a bundle before its producers start
///
/// The bundle exists for its orphan timeout, until a producer opens it. If it is open already, the terms must be equal.
#[derive(Args, Debug)]
struct OpenBundle {
    #[command(flatten)]
    pool: PoolArguments,
    /// The path: parts between slashes, each of ASCII letters, digits and ._+:-=,@
    path: String,
    #[command(flatten)]
    terms: TermsArguments,
    /// Time until a bundle that no producer has open is aborted (default: that of the server)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    orphan_timeout: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Terms of a bundle when it is opened.
#[derive(Args, Debug)]
pub(crate) struct TermsArguments {
    /// Number of members of the complete bundle: objects and nested bundles
    #[arg(long, value_name = "N")]
    pub(crate) members: Option<u64>,
    /// An attribute of the bundle, for selectors
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) about: Vec<AttributePair>,
}

#[derive(Args, Debug)]
struct NamedBundle {
    #[command(flatten)]
    pool: PoolArguments,
    /// The path
    path: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List incomplete and remembered bundles
#[derive(Args, Debug)]
struct ListBundles {
    #[command(flatten)]
    pool: PoolArguments,
    /// Selects bundles by their attributes: all selectors must match
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Only this path and nested ones
    #[arg(long, value_name = "PATH")]
    under: Option<String>,
    /// Show the paths as a tree
    #[arg(short, long)]
    tree: bool,
    /// Print a JSON line for each bundle
    #[arg(long, conflicts_with = "tree")]
    json: bool,
}

impl TermsArguments {
    /// Opens the bundle of a path on these terms. Its attributes belong to the first schema of the pool that accepts them.
    pub(crate) fn open(&self, pool: &Pool, path: &str, orphan_timeout: Option<Duration>) -> Result<Bundle> {
        let mut record = Vec::new();
        let schemas = pool.schemas()?;
        let takes =
            |schema: &&std::sync::Arc<junctura::Schema>| schema.partial_record(given(&self.about), &mut record).is_ok();
        let schema = schemas.iter().find(takes).map(|schema| schema.name().to_owned());
        let options = BundleOptions {
            members: self.members,
            orphan_timeout,
            schema: schema.as_deref(),
        };
        pool.open_bundle(path, given(&self.about), options)
    }
}

/// Runs a command about bundles.
pub(crate) fn run(arguments: &BundleArguments) -> Result<()> {
    match &arguments.command {
        BundleCommand::Open(open) => open.run(),
        BundleCommand::Seal(path) => path.seal(),
        BundleCommand::Abort(path) => path.abort(),
        BundleCommand::List(list) => list.run(),
        BundleCommand::Show(path) => path.show(),
    }
}

impl OpenBundle {
    fn run(&self) -> Result<()> {
        let pool = self
            .pool
            .connect(&InterruptFlag::install()?, "junctura pool bundle open")?;
        let bundle = self.terms.open(&pool, &self.path, self.orphan_timeout)?;
        let entry = find(&pool, &self.path)?;
        let mut out = StandardOutput::new();
        if self.json {
            out.json(&document(&entry))?;
        } else {
            writeln!(out, "{}", line(&entry))?;
        }
        bundle.leave()?;
        out.flush()
    }
}

impl NamedBundle {
    fn seal(&self) -> Result<()> {
        let (bundle, mut out) = self.join("junctura pool bundle seal")?;
        let completed = bundle.seal()?;
        let first = completed.first().map(|version| version.to_string());
        if self.json {
            out.json(&json!({"path": self.path, "objects": completed.objects(), "first": first}))?;
        } else {
            let s = if completed.objects() == 1 { "" } else { "s" };
            writeln!(out, "{} is complete: {} object{s}", self.path, completed.objects())?;
        }
        out.flush()
    }

    fn abort(&self) -> Result<()> {
        let (bundle, mut out) = self.join("junctura pool bundle abort")?;
        let freed = bundle.abort()?;
        if self.json {
            out.json(&json!({"path": self.path, "freed": freed}))?;
        } else {
            let s = if freed == 1 { "" } else { "s" };
            writeln!(out, "{} is aborted: {freed} object{s} freed", self.path)?;
        }
        out.flush()
    }

    fn show(&self) -> Result<()> {
        let pool = self
            .pool
            .connect_to_read(&InterruptFlag::install()?, "junctura pool bundle show")?;
        let entry = find(&pool, &self.path)?;
        let mut out = StandardOutput::new();
        if self.json {
            out.json(&document(&entry))?;
            return out.flush();
        }
        writeln!(out, "{}", line(&entry))?;
        for (name, text) in entry.attributes.iter().flat_map(Described::attributes) {
            writeln!(out, "  {name}={text}")?;
        }
        out.flush()
    }

    /// Joins an open bundle; a new one is not created.
    fn join(&self, program: &str) -> Result<(Bundle, StandardOutput)> {
        let pool = self.pool.connect_to_read(&InterruptFlag::install()?, program)?;
        find(&pool, &self.path)?;
        let nothing: [(&str, &str); 0] = [];
        let bundle = pool.open_bundle(&self.path, nothing, BundleOptions::default())?;
        Ok((bundle, StandardOutput::new()))
    }
}

impl ListBundles {
    fn run(&self) -> Result<()> {
        let pool = self
            .pool
            .connect_to_read(&InterruptFlag::install()?, "junctura pool bundle list")?;
        let selector = selector(&self.selectors, &pool)?;
        let entries = about_selector(pool.bundles(&selector, self.under.as_deref()), &selector)?;
        let mut out = StandardOutput::new();
        if self.tree {
            write!(out, "{}", tree(&entries))?;
            return out.flush();
        }
        for entry in &entries {
            if self.json {
                out.json(&document(entry))?;
            } else {
                writeln!(out, "{}", line(entry))?;
            }
        }
        out.flush()
    }
}

fn find(pool: &Pool, path: &str) -> Result<BundleEntry> {
    let entries = pool.bundles("", Some(path))?;
    let found = entries.into_iter().find(|entry| entry.path.as_deref() == Some(path));
    found.ok_or_else(|| {
        let cause = "no bundle has this path, or it is forgotten";
        Error::new(Code::NotFound, format!("bundle {path}"), cause)
    })
}

fn line(entry: &BundleEntry) -> String {
    let path = entry.path.as_deref().unwrap_or("(without a path)");
    format!("{path}  {}", state(entry))
}

/// Returns the state as text.
fn state(entry: &BundleEntry) -> String {
    let mut text = format!("{}, {}", entry.state.name(), entry.members);
    if let Some(declared) = entry.declared.filter(|&declared| declared != entry.members) {
        let _ = write!(text, " of {declared}");
    }
    text.push_str(if entry.members == 1 { " member" } else { " members" });
    if entry.state == BundleState::Visible {
        let _ = write!(text, ", {} objects there", entry.visible);
    } else {
        let _ = write!(
            text,
            ", {}, open {} times",
            size::bytes(entry.staged_bytes),
            entry.openers
        );
    }
    if let Some(time) = entry.orphaned_for {
        let _ = write!(text, ", aborted in {} s", time.as_secs());
    }
    text
}

fn document(entry: &BundleEntry) -> Value {
    let attributes = entry.attributes.as_ref().map_or_else(
        || json!({}),
        |about| json::attributes(about.schema(), about.attributes()),
    );
    json!({
        "number": entry.number,
        "path": entry.path,
        "state": entry.state.name(),
        "declared": entry.declared,
        "members": entry.members,
        "staged_bytes": entry.staged_bytes,
        "openers": entry.openers,
        "orphaned_for_s": entry.orphaned_for.map(|time| time.as_secs_f64()),
        "attributes": attributes,
        "first": entry.first.map(|version| version.to_string()),
        "visible": entry.visible,
        "parent": entry.parent,
    })
}

/// Returns the paths as a tree; a part that is not a bundle has its own line.
fn tree(entries: &[BundleEntry]) -> String {
    let mut nodes: BTreeMap<Vec<&str>, Option<&BundleEntry>> = BTreeMap::new();
    let mut text = String::new();
    for entry in entries {
        let Some(path) = entry.path.as_deref() else {
            let _ = writeln!(text, "{}", line(entry));
            continue;
        };
        let parts: Vec<&str> = path.split('/').collect();
        for depth in 1..parts.len() {
            nodes.entry(parts[..depth].to_vec()).or_default();
        }
        nodes.insert(parts, Some(entry));
    }
    for (parts, entry) in nodes {
        let indent = "  ".repeat(parts.len() - 1);
        let name = parts.last().copied().unwrap_or_default();
        let _ = match entry {
            Some(entry) => writeln!(text, "{indent}{name}  {}", state(entry)),
            None => writeln!(text, "{indent}{name}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: Option<&str>, state: BundleState) -> BundleEntry {
        BundleEntry {
            number: 1,
            path: path.map(str::to_owned),
            state,
            declared: Some(3),
            members: 2,
            staged_bytes: 10,
            openers: 1,
            orphaned_for: None,
            attributes: None,
            first: None,
            visible: 1,
            parent: None,
        }
    }

    #[test]
    fn paths_are_shown_as_a_tree() {
        let entries = [
            entry(Some("run/6/t"), BundleState::Open),
            entry(None, BundleState::Open),
            entry(Some("run/6"), BundleState::Open),
            entry(Some("a"), BundleState::Visible),
        ];
        assert_eq!(
            tree(&entries),
            "(without a path)  open, 2 of 3 members, 10 B, open 1 times\n\
             a  visible, 2 of 3 members, 1 objects there\n\
             run\n  \
               6  open, 2 of 3 members, 10 B, open 1 times\n    \
                 t  open, 2 of 3 members, 10 B, open 1 times\n"
        );
    }
}
