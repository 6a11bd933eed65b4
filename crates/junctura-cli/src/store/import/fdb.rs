//! `junctura import fdb`: the fields of an FDB, byte for byte.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use junctura::{Code, Error, Result, Schema};
use junctura_model::{KeyHash, SelectorSet};
use junctura_store::{Layout, Store, Writer};

use super::fields::{DataFiles, Field, Fields, SchemaFile};
use super::placing::place;
use crate::attributes::about_selector;
use crate::interrupt::Interrupt;
use crate::program::Program;
use crate::put::files::Place;
use crate::put::tally::{Origin, Tally, TellArguments};
use crate::schema_files;
use crate::store::{self, StoreArguments};

const EXAMPLES: &str = "Examples:
  junctura import fdb /fdb --store /data/archive --create             everything, under the schema of the FDB
  junctura import fdb /fdb/config.yaml --store /data/archive class=od,date=20261120
  junctura import fdb /fdb --store /data/archive --dry-run -v         what would be copied
Again, it copies what is new or has changed: what the store has already, it compares by its checksum.";

/// Copy what an FDB has
///
/// Of each field the newest version, under the key that FDB lists, byte for byte. FDB is read with its own Python package
/// (pip install 'junctura[fdb]'). ROOT is a configuration file of FDB; or a folder with etc/fdb/config.yaml; or one with the
/// file schema, and the data beside it or in the folder root. A field goes under the first schema of the store that has its
/// attributes in the same levels.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where the FDB is
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// What to copy: each selector must hold; all without one
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    store: StoreArguments,
    /// Make the store, if there is none: for the schema file of the FDB, and the built-in schemas
    #[arg(long)]
    create: bool,
    /// Say what would be copied, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Make visible what is there after each so many objects
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// The Python that has FDB's package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "PROGRAM")]
    python: Option<OsString>,
    #[command(flatten)]
    tell: TellArguments,
}

/// Imports.
pub(crate) fn run(arguments: &Arguments, program: &Program) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let python = arguments.python.clone().unwrap_or_else(|| program.python());
    let (schema, mut fields) = Fields::of(&arguments.root, &python)?;
    let store = arguments.open(&schema)?;
    let selector = store::selector(&arguments.selectors, &store)?;
    let chosen = about_selector(SelectorSet::parse(&selector, store.schemas()), &selector)?;
    let mut import = Import {
        known: known(&store, &selector)?,
        writer: store.writer()?,
        schemas: store.schemas().to_vec(),
        chosen,
        dry_run: arguments.dry_run,
        every: arguments.every,
        met: HashSet::new(),
        files: DataFiles::default(),
        bytes: Vec::new(),
        unflushed: Vec::new(),
        passed: 0,
        same: 0,
        tally: Tally::new(arguments.tell, None),
    };
    let read = import.all(&mut fields, &interrupt);
    let outcome = read.and_then(|()| import.flush());
    if arguments.dry_run && outcome.is_ok() && !arguments.tell.is_quiet() {
        import.tally.say(&"nothing was copied: this is what would be");
    }
    let same = import.same;
    import.tally.finish(outcome, &[("there already", same)])
}

impl Arguments {
    /// The store; for a rehearsal without one, one like it in memory.
    fn open(&self, schema: &SchemaFile) -> Result<Store> {
        match self.store.open() {
            Err(error) if error.code() == Code::NotFound && self.create => {}
            opened => return opened,
        }
        if let Some(error) = &schema.error {
            let cause = format!("the schema file of the FDB is needed to make a store: {error}");
            return Err(Error::new(Code::NotFound, schema.file.as_str(), cause));
        }
        let schemas = schema_files::parse(&schema.text, &schema.file)?;
        let url = if self.dry_run { "memory:" } else { self.store.url() };
        Store::create_url(url, &schema_files::and_builtin(schemas), &Layout::default())
    }
}

/// Length and checksum of what the store has.
fn known(store: &Store, selector: &str) -> Result<HashMap<KeyHash, (u64, u32)>> {
    let listing = about_selector(store.snapshot()?.list(selector), selector)?;
    let hash = |object: &junctura_store::Object<'_>| object.schema().key_hash(&object.key());
    let what = |object: &junctura_store::Object<'_>| (object.bytes(), object.checksum());
    Ok(listing.iter().map(|object| (hash(&object), what(&object))).collect())
}

/// An import on its way.
struct Import {
    writer: Writer,
    schemas: Vec<Arc<Schema>>,
    chosen: SelectorSet,
    dry_run: bool,
    every: u64,
    /// What the store had before.
    known: HashMap<KeyHash, (u64, u32)>,
    /// What this import has come across.
    met: HashSet<KeyHash>,
    files: DataFiles,
    /// The field at hand.
    bytes: Vec<u8>,
    unflushed: Vec<Origin>,
    /// Bytes of all fields so far.
    passed: u64,
    /// Fields that the store has as they are.
    same: u64,
    tally: Tally,
}

impl Import {
    fn all(&mut self, fields: &mut Fields, interrupt: &Interrupt) -> Result<()> {
        loop {
            let field = fields.next();
            // Ctrl-C ends the listing, too.
            interrupt.check()?;
            let Some(field) = field? else { return Ok(()) };
            if let Err(error) = self.take(&field) {
                self.tally.failed(error)?;
            }
            self.passed += field.length;
            self.tally.show(self.passed);
            if self.unflushed.len() as u64 >= self.every {
                self.flush()?;
            }
        }
    }

    fn take(&mut self, field: &Field) -> Result<()> {
        let (at, record) = place(field, &self.schemas)?;
        if !self
            .chosen
            .of(at)
            .is_some_and(|selector| selector.matches(record.as_ref()))
        {
            return Ok(());
        }
        let schema = &self.schemas[at];
        let key = schema.key_text(record.as_ref());
        let hash = schema.key_hash(&key);
        if !self.met.insert(hash) {
            let cause = format!("FDB has another field that is {key} here");
            return Err(Error::new(Code::AlreadyExists, field.name(), cause));
        }
        self.files.read(field, &mut self.bytes)?;
        if self.known.get(&hash) == Some(&(field.length, junctura_store::checksum(&self.bytes))) {
            self.same += 1;
            return Ok(());
        }
        if !self.dry_run {
            self.writer.archive_record(at, &record, &self.bytes, None)?;
        }
        let file = Place {
            file: field.file.as_str().into(),
            message: None,
        };
        self.unflushed.push(Origin::new(&file, field.length, key));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let commit = if self.dry_run {
            "new".to_owned()
        } else {
            self.writer.flush()?.commit.to_string()
        };
        for origin in self.unflushed.drain(..) {
            self.tally.count(&origin);
            self.tally.tell(&origin, Some(&commit))?;
        }
        self.tally.flush()
    }
}
