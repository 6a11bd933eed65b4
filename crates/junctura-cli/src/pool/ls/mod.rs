//! `junctura ls` lists visible objects as a table, a tree, JSON lines or a count. It transfers no payload.

mod counted;
mod pieces;
mod shown;
mod table;
mod tree;

use clap::{Args, ValueEnum};
use junctura::{Code, Entry, Error, ListOptions, Pool, Result, TallyOptions};
use junctura_model::schema::fdb_key;
use junctura_store::Store;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::{self, StandardOutput};
use junctura_terminal::progress::SlowWork;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::{about_selector, note_unknown_in, selector_of_present};
use crate::store;
use crate::store::query::order::{OrderedObject, order};
use crate::url::{BehindArguments, PoolArguments};
use counted::counted_tree;
use pieces::ArraySizes;
use shown::{ListedObject, VisibleSince};
use table::ListTable;
use tree::ObjectTree;

/// Objects per page of output.
const PAGE: usize = 1000;

const EXAMPLES: &str = "Examples:
  junctura ls                                      everything
  junctura ls param=t 'levelist>=500' --sort step  both selectors, ordered by step
  junctura ls --tree                               numbers and sizes by key
  junctura ls --count class=od                     only the number
  junctura ls --limit 20 --sort step               the first 20
  junctura ls --bundle run/step=6                  the members of a bundle
  junctura ls --json param=t | jq -r .key          for programs
  junctura ls --store /data/archive param=t        the objects in a store
  junctura ls --behind /data/archive param=t       the objects in the pool and in the store behind it
  junctura ls --store /data/archive --style fdb    the same lines as fdb-list --porcelain";

/// List the objects in the pool, or in a store
///
/// Prints a line for each object: the attributes of its key, and its size. All selectors must match; without a selector, all
/// objects are listed. A key has three levels, which --tree shows with counts and sizes: dataset, collocation, element.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LsArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// List the objects in this store
    #[arg(long, value_name = "URL", conflicts_with = "behind")]
    store: Option<String>,
    #[command(flatten)]
    behind: BehindArguments,
    #[command(flatten)]
    versions: store::VersionsArguments,
    /// Selects objects: param=t, step=0/to/24/by/6, 'levelist>=500'
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Also show versions, locations of payloads and the attributes outside the key; in a tree, every element
    #[arg(short, long)]
    long: bool,
    /// Show datasets and collocations with counts and sizes, and the ranges of their elements
    #[arg(short, long)]
    tree: bool,
    /// Print only the number of objects
    #[arg(short, long, conflicts_with_all = ["tree", "long"])]
    count: bool,
    /// Order by this attribute instead of by key
    #[arg(long, value_name = "ATTRIBUTE", conflicts_with_all = ["tree", "count"])]
    sort: Option<String>,
    /// Show only the first N objects
    #[arg(long, value_name = "N", conflicts_with_all = ["tree", "count", "incomplete", "bundle"], value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Also show members of incomplete bundles
    #[arg(long)]
    incomplete: bool,
    /// Only members of the bundle of this path, or of one nested in it
    #[arg(long, value_name = "PATH")]
    bundle: Option<String>,
    /// Print lines in the style of another program: fdb prints those of `fdb-list --porcelain`, a key each; with --long, those of
    /// `--porcelain --length`
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["tree", "count", "json"])]
    style: Option<ListStyle>,
    /// Print JSON: a line for each object; with --tree, for each collocation; with --count, one
    #[arg(long)]
    json: bool,
}

/// A program whose lines are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ListStyle {
    Fdb,
}

/// Number and size of the listed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ListTotal {
    objects: u64,
    bytes: u64,
}

impl ListTotal {
    fn add(&mut self, bytes: u64) {
        self.add_all(ListTotal { objects: 1, bytes });
    }

    fn add_all(&mut self, more: ListTotal) {
        self.objects += more.objects;
        self.bytes += more.bytes;
    }
}

impl std::fmt::Display for ListTotal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = if self.objects == 1 { "" } else { "s" };
        write!(f, "{} object{s}, {}", self.objects, size::bytes(self.bytes))
    }
}

/// Lists.
pub(crate) fn run(arguments: &LsArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let mut list = ListOutput::new(arguments);
    match &arguments.store {
        Some(url) => arguments.list_store(url, &store::open(url)?, &interrupt, &mut list)?,
        None => arguments.list_pool(&interrupt, &mut list)?,
    }
    list.end()
}

impl LsArguments {
    fn list_pool(&self, interrupt: &InterruptFlag, list: &mut ListOutput<'_>) -> Result<()> {
        self.versions.are_of_no_pool()?;
        let visits = self.count || self.tree || self.limit.is_some();
        let pool = self
            .pool
            .connect_to_list(interrupt, &self.behind, visits, "junctura ls")?;
        let selector = selector_of_present(&self.selectors, &pool)?;
        if !self.count_in_pool(&pool, &selector, list)? {
            self.list_entries(&pool, &selector, interrupt, list)?;
        }
        if list.total.objects == 0 {
            note_unknown_in(&pool, &selector)?;
        }
        Ok(())
    }

    /// Lets the server count instead of listing, if that is enough.
    fn count_in_pool(&self, pool: &Pool, selector: &str, list: &mut ListOutput<'_>) -> Result<bool> {
        let is_of_pool = self.behind.url().is_none() && !self.incomplete && self.bundle.is_none();
        if is_of_pool && self.count {
            let options = TallyOptions {
                sum_bytes: self.json,
                ..TallyOptions::default()
            };
            let tally = about_selector(pool.tally(selector, options), selector)?;
            list.total = ListTotal {
                objects: tally.objects(),
                bytes: tally.bytes().unwrap_or_default(),
            };
            return Ok(true);
        }
        if is_of_pool
            && self.tree
            && !self.long
            && let Some(tree) = about_selector(counted_tree(pool, selector), selector)?
        {
            list.total = tree.total();
            list.tree = tree;
            return Ok(true);
        }
        Ok(false)
    }

    /// Lists the entries of the pool; with a limit, a page at a time.
    fn list_entries(
        &self,
        pool: &Pool,
        selector: &str,
        interrupt: &InterruptFlag,
        list: &mut ListOutput<'_>,
    ) -> Result<()> {
        let (mut left, mut behind): (Option<u64>, Option<Entry>) = (self.limit, None);
        let sizes = ArraySizes::of(pool);
        loop {
            let limit = left.map(|left| left.min(PAGE as u64) as u32);
            let options = ListOptions {
                order_by: self.sort.as_deref(),
                incomplete: self.incomplete,
                bundle: self.bundle.as_deref(),
                limit,
                after: behind.as_deref(),
            };
            let before = list.total.objects;
            for page in about_selector(pool.list_with(selector, options), selector)? {
                interrupt.check()?;
                let mut page = about_selector(page, selector)?;
                let arrays = sizes.of_page(&page)?;
                let shown = page.iter().enumerate();
                let shown = shown.map(|(at, entry)| ListedObject::from(entry).in_pieces(arrays.get(&at)));
                list.write(&shown.collect::<Vec<_>>())?;
                behind = page.pop().or(behind);
            }
            let got = list.total.objects - before;
            left = left.map(|left| left - got);
            let is_over = limit.is_none_or(|limit| got < u64::from(limit));
            if is_over || left == Some(0) {
                return Ok(());
            }
        }
    }

    fn list_store(&self, url: &str, store: &Store, interrupt: &InterruptFlag, list: &mut ListOutput<'_>) -> Result<()> {
        let of_pools = [("--incomplete", self.incomplete), ("--bundle", self.bundle.is_some())];
        if let Some((name, _)) = of_pools.iter().find(|(_, given)| *given) {
            return Err(Error::new(Code::InvalidArgument, *name, "a store has no bundles"));
        }
        let selector = store::selector(&self.selectors, store)?;
        let slow = SlowWork::store(url);
        let snapshot = store.snapshot()?;
        let listing = self.versions.list(&snapshot, &selector)?;
        drop(slow);
        if listing.is_empty() {
            store::note_unknown_in(store, &selector);
        }
        if self.count {
            list.total.objects += listing.len() as u64;
            list.total.bytes += listing.bytes();
            return Ok(());
        }
        let mut rows: Vec<OrderedObject<'_>> = Vec::with_capacity(listing.len());
        for object in listing.iter() {
            rows.push(OrderedObject(object.describe(), object));
            if rows.len().is_multiple_of(PAGE) {
                interrupt.check()?;
            }
        }
        if !self.tree {
            order(&mut rows, self.sort.as_deref())?;
        }
        if let Some(limit) = self.limit {
            rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        for page in rows.chunks(PAGE) {
            interrupt.check()?;
            list.write(&page.iter().map(ListedObject::from).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl<'a> From<&'a OrderedObject<'_>> for ListedObject<'a> {
    fn from(OrderedObject(described, object): &'a OrderedObject<'_>) -> Self {
        ListedObject {
            object: described,
            bytes: object.bytes(),
            pieces: None,
            since: VisibleSince::Commit(object.commit()),
            place: object.location().to_string().into(),
        }
    }
}

/// A list during its output.
struct ListOutput<'a> {
    arguments: &'a LsArguments,
    out: StandardOutput,
    table: ListTable,
    tree: ObjectTree,
    total: ListTotal,
}

impl<'a> ListOutput<'a> {
    fn new(arguments: &'a LsArguments) -> Self {
        Self {
            arguments,
            out: StandardOutput::new(),
            table: ListTable::new(arguments.long),
            tree: ObjectTree::new(arguments.long),
            total: ListTotal::default(),
        }
    }

    fn write(&mut self, page: &[ListedObject<'_>]) -> Result<()> {
        for shown in page {
            self.total.add(shown.bytes);
            if self.arguments.tree {
                self.tree.add(shown.object, shown.bytes);
            }
        }
        if self.arguments.tree || self.arguments.count {
            return Ok(());
        }
        if self.arguments.style == Some(ListStyle::Fdb) {
            return page.iter().try_for_each(|shown| {
                let key = fdb_key(shown.object.schema(), shown.object.attributes());
                if self.arguments.long {
                    writeln!(self.out, "{key}, length={}", shown.bytes)
                } else {
                    writeln!(self.out, "{key}")
                }
            });
        }
        if self.arguments.json {
            return page.iter().try_for_each(|shown| self.out.json(&shown.document()));
        }
        self.table.write(page, &mut self.out)
    }

    fn end(mut self) -> Result<()> {
        let ListTotal { objects, bytes } = self.total;
        match (self.arguments.tree, self.arguments.count, self.arguments.json) {
            (true, _, true) => self.tree.write_json(&mut self.out)?,
            (true, _, false) => self.tree.write(&mut self.out)?,
            (_, true, true) => self.out.json(&json!({"objects": objects, "bytes": bytes}))?,
            (_, true, false) => writeln!(self.out, "{objects}")?,
            _ => {
                self.out.flush()?;
                if output::is_terminal() && !self.arguments.json && self.arguments.style.is_none() {
                    say!("{}", self.total);
                }
            }
        }
        self.out.flush()
    }
}
