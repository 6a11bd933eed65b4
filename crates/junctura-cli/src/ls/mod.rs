//! `junctura ls`: what is visible, as a table, a tree, JSON lines or a count. No payload moves.

mod table;
mod tree;

use clap::Args;
use junctura::{Entry, ListOptions, Result};
use serde_json::json;

use crate::attributes::{about_selector, selector};
use crate::interrupt::Interrupt;
use crate::output::{self, Out};
use crate::url::PoolArguments;
use crate::{json, size};
use table::Table;
use tree::Tree;

const EXAMPLES: &str = "Examples:
  junctura ls                                      everything
  junctura ls param=t 'levelist>=500' --sort step  what matches both, by step
  junctura ls --tree                               how much there is of what
  junctura ls --count class=od                     how many, and nothing else
  junctura ls --bundle run/step=6                  what came together
  junctura ls --json param=t | jq -r .key          for programs";

/// List the objects in the pool
///
/// A line for each object: the attributes of its key, and its size. Several selectors must all hold; without one,
/// everything is listed. A key has three levels, which --tree shows with counts and sizes: dataset, collocation, element.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// What to list: param=t, step=0/to/24/by/6, 'levelist>=500'
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Show versions, where payloads lie and the attributes outside the key, too; in a tree, every element
    #[arg(short, long)]
    long: bool,
    /// Show datasets and collocations with counts and sizes, and what their elements range over
    #[arg(short, long)]
    tree: bool,
    /// Print how many objects there are, and nothing else
    #[arg(short, long, conflicts_with_all = ["tree", "long"])]
    count: bool,
    /// Order by this attribute instead of by key
    #[arg(long, value_name = "ATTRIBUTE", conflicts_with_all = ["tree", "count"])]
    sort: Option<String>,
    /// Show members of bundles that are not complete, too
    #[arg(long)]
    incomplete: bool,
    /// Only what belongs to the bundle of this path, or to one nested in it
    #[arg(long, value_name = "PATH")]
    bundle: Option<String>,
    /// Print JSON: a line for each object; with --tree, for each collocation; with --count, one
    #[arg(long)]
    json: bool,
}

/// What there is, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    objects: u64,
    bytes: u64,
}

impl Total {
    fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = if self.objects == 1 { "" } else { "s" };
        write!(f, "{} object{s}, {}", self.objects, size::bytes(self.bytes))
    }
}

/// Lists.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let pool = interrupt.connect(&arguments.pool, "junctura ls")?;
    let selector = selector(&arguments.selectors, &pool)?;
    let options = ListOptions {
        order_by: arguments.sort.as_deref(),
        incomplete: arguments.incomplete,
        bundle: arguments.bundle.as_deref(),
    };
    let pages = about_selector(pool.list_with(&options, &selector), &selector)?;
    let mut out = Out::new();
    let mut table = Table::new(arguments.long);
    let mut tree = Tree::new(arguments.long);
    let mut total = Total::default();
    for page in pages {
        interrupt.check()?;
        let page = about_selector(page, &selector)?;
        for entry in &page {
            total.add(entry.bytes());
            if arguments.tree {
                tree.add(entry);
            }
        }
        if arguments.tree {
            continue;
        }
        if arguments.json && !arguments.count {
            page.iter().try_for_each(|entry| out.json(&document(entry)))?;
        } else if !arguments.count {
            table.write(&page, &mut out)?;
        }
    }
    arguments.end(&tree, total, &mut out)?;
    out.flush()
}

impl Arguments {
    fn end(&self, tree: &Tree, total: Total, out: &mut Out) -> Result<()> {
        match (self.tree, self.count, self.json) {
            (true, _, true) => tree.write_json(out),
            (true, _, false) => tree.write(out),
            (_, true, true) => out.json(&json!({"objects": total.objects, "bytes": total.bytes})),
            (_, true, false) => writeln!(out, "{}", total.objects),
            _ => {
                out.flush()?;
                if output::is_terminal() && !self.json {
                    say!("{total}");
                }
                Ok(())
            }
        }
    }
}

/// Where a payload lies.
fn place(entry: &Entry) -> &'static str {
    if entry.is_spilled() { "file" } else { "memory" }
}

fn document(entry: &Entry) -> serde_json::Value {
    json!({
        "key": entry.key(),
        "schema": entry.schema().name(),
        "version": entry.staged_in().is_none().then(|| entry.version().to_string()),
        "staged_in": entry.staged_in(),
        "bytes": entry.bytes(),
        "place": place(entry),
        "attributes": json::attributes(entry.schema(), entry.attributes()),
    })
}
