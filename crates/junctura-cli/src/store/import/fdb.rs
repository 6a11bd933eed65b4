//! `junctura store import fdb` copies the fields of an FDB, byte for byte.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use junctura::{Code, Error, Result, Schema};
use junctura_model::{KeyHash, SelectorSet};
use junctura_store::{Store, StoreLayout, StoreWriter};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::program::ProgramWords;

use super::fields::{DataFiles, FdbField, FieldListing, FieldLocation, SchemaFile};
use super::placing::place;
use super::versions::{self, Content, FieldState, ListedVersions, OfKey, two_in_one};
use crate::attributes::about_selector;
use crate::model::schema_files;
use crate::pool::put::files::InputPosition;
use crate::pool::put::tally::{OfferOrigin, PutTally, TellArguments};
use crate::store::{self, StoreArguments};

const EXAMPLES: &str = "Examples:
  junctura store import fdb /fdb --store /data/archive --create             everything, under the schema of the FDB
  junctura store import fdb /fdb/config.yaml --store /data/archive class=od,date=20261120
  junctura store import fdb /fdb --store /data/archive --dry-run -v         what would be copied
  junctura store import fdb /fdb --store /data/archive --all-versions       also masked versions, as long as FDB has them
Again, it copies what is new or has changed: what the store has already, it compares by its checksum.";

/// Copy the fields of an FDB
///
/// Copies the newest version of each field, or all that FDB still has (--all-versions), under the key that FDB lists, byte for byte. The command reads FDB with FDB's own Python package
/// (pip install pyfdb fdb5lib). ROOT is a configuration file of FDB; or a folder with etc/fdb/config.yaml; or one with the
/// file schema, and the data beside it or in the folder root. A field is written under the first schema of the store that has its
/// attributes in the same levels.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FdbArguments {
    /// Location of the FDB
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Selects fields: all selectors must match; default: all fields
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    store: StoreArguments,
    /// Create the store if it does not exist, with the schema file of the FDB and the built-in schemas
    #[arg(long)]
    create: bool,
    /// Also copy masked versions, the oldest first; all keys are listed before the first copy
    #[arg(long)]
    all_versions: bool,
    /// Report what would be copied, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Make fields visible after each N
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// The Python that has FDB's package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "PROGRAM")]
    python: Option<OsString>,
    #[command(flatten)]
    tell: TellArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &FdbArguments, program: &ProgramWords) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let python = arguments.python.clone().unwrap_or_else(|| program.python());
    let (schema, mut fields) = FieldListing::of(&arguments.root, &python, arguments.all_versions)?;
    let store = arguments.open(&schema)?;
    let selector = store::selector(&arguments.selectors, &store)?;
    let chosen = about_selector(SelectorSet::parse(&selector, store.schemas()), &selector)?;
    let mut import = FdbImport {
        known: known(&store, &selector, arguments.all_versions)?,
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
        tally: PutTally::new(arguments.tell, None),
    };
    let read = if arguments.all_versions {
        import.all_versions(&mut fields, &interrupt)
    } else {
        import.all(&mut fields, &interrupt)
    };
    let outcome = read.and_then(|()| import.flush());
    if arguments.dry_run && outcome.is_ok() && !arguments.tell.is_quiet() {
        import.tally.say(&"nothing was copied: this is what would be");
    }
    let same = import.same;
    import.tally.finish(outcome, &[("there already", same)])
}

impl FdbArguments {
    /// The store; in a dry run without one, an equal store in memory.
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
        Store::create_url(url, &schema_files::and_builtin(schemas), &StoreLayout::default())
    }
}

/// Length and checksum of the store's objects, in the order of commits.
fn known(store: &Store, selector: &str, all_versions: bool) -> Result<HashMap<KeyHash, Vec<Content>>> {
    let snapshot = store.snapshot()?;
    let listing = if all_versions {
        snapshot.list_all(selector)
    } else {
        snapshot.list(selector)
    };
    let mut known: HashMap<KeyHash, Vec<Content>> = HashMap::new();
    for object in about_selector(listing, selector)?.iter() {
        let hash = object.schema().key_hash(&object.key());
        known.entry(hash).or_default().push((object.bytes(), object.checksum()));
    }
    Ok(known)
}

/// A running import.
struct FdbImport {
    writer: StoreWriter,
    schemas: Vec<Arc<Schema>>,
    chosen: SelectorSet,
    dry_run: bool,
    every: u64,
    /// Objects of the store before the import.
    known: HashMap<KeyHash, Vec<Content>>,
    /// Keys that this import has read.
    met: HashSet<KeyHash>,
    files: DataFiles,
    /// The current field.
    bytes: Vec<u8>,
    unflushed: Vec<OfferOrigin>,
    /// Bytes of all fields so far.
    passed: u64,
    /// Number of fields that the store already has.
    same: u64,
    tally: PutTally,
}

impl FdbImport {
    fn all(&mut self, fields: &mut FieldListing, interrupt: &InterruptFlag) -> Result<()> {
        loop {
            let field = fields.next();
            // Ctrl-C ends the listing, too.
            interrupt.check()?;
            let Some(field) = field? else { return Ok(()) };
            if let Err(error) = self.take(&field) {
                self.tally.failed(error)?;
            }
            self.passed += field.bytes.length;
            self.tally.show(self.passed);
            self.flush_if_due()?;
        }
    }

    /// As [`Self::all`]. FDB lists the newest version first; in a store the version that was archived last masks the others.
    fn all_versions(&mut self, fields: &mut FieldListing, interrupt: &InterruptFlag) -> Result<()> {
        let mut listed = ListedVersions::default();
        loop {
            let field = fields.next();
            interrupt.check()?;
            let Some(field) = field? else { break };
            let added = self.chosen(&field).and_then(|found| match found {
                Some(found) => listed.add(found, field),
                None => Ok(()),
            });
            if let Err(error) = added {
                self.tally.failed(error)?;
            }
        }
        for versions in listed.into_oldest_first() {
            let there = self
                .there(&versions)
                .or_else(|error| self.tally.failed(error).map(|()| 0))?;
            self.same += there as u64;
            for bytes in &versions.oldest_first[there..] {
                interrupt.check()?;
                let copied = self.files.read(&versions.name, bytes, &mut self.bytes);
                if let Err(error) = copied.and_then(|()| self.archive(&versions.found, bytes)) {
                    self.tally.failed(error)?;
                }
            }
            // A reader, and an import that is resumed, find the newest version of each key as the current one, or none.
            self.flush_if_due()?;
        }
        Ok(())
    }

    /// Number of versions of a key that are not copied.
    fn there(&mut self, versions: &OfKey) -> Result<usize> {
        let Some(ours) = self.known.get(&versions.found.hash) else {
            return Ok(0);
        };
        let mut theirs = Vec::new();
        for bytes in &versions.oldest_first {
            self.files.read(&versions.name, bytes, &mut self.bytes)?;
            theirs.push((bytes.length, junctura_store::checksum(&self.bytes)));
        }
        Ok(versions::there(&theirs, ours))
    }

    /// Returns the attributes of a field here, if it was selected.
    fn chosen(&self, field: &FdbField) -> Result<Option<FieldState>> {
        let (schema, record) = place(field, &self.schemas)?;
        let chosen = self.chosen.of(schema);
        if !chosen.is_some_and(|selector| selector.matches(record.as_ref())) {
            return Ok(None);
        }
        let key = self.schemas[schema].key_text(record.as_ref());
        let hash = self.schemas[schema].key_hash(&key);
        Ok(Some(FieldState {
            schema,
            record,
            key,
            hash,
        }))
    }

    fn take(&mut self, field: &FdbField) -> Result<()> {
        let Some(found) = self.chosen(field)? else {
            return Ok(());
        };
        let name = field.name();
        if !self.met.insert(found.hash) {
            return Err(two_in_one(&name, &found.key));
        }
        self.files.read(&name, &field.bytes, &mut self.bytes)?;
        let content = (field.bytes.length, junctura_store::checksum(&self.bytes));
        if self.known.get(&found.hash).and_then(|ours| ours.last()) == Some(&content) {
            self.same += 1;
            return Ok(());
        }
        self.archive(&found, &field.bytes)
    }

    /// The bytes of the last read.
    fn archive(&mut self, found: &FieldState, bytes: &FieldLocation) -> Result<()> {
        if !self.dry_run {
            self.writer
                .archive_record(found.schema, found.record.as_ref(), &self.bytes, None)?;
        }
        let file = InputPosition {
            file: bytes.file.as_str().into(),
            message: None,
            field: None,
        };
        let schema = self.schemas[found.schema].name();
        self.unflushed
            .push(OfferOrigin::new(&file, bytes.length, found.key.clone(), schema));
        Ok(())
    }

    fn flush_if_due(&mut self) -> Result<()> {
        if self.unflushed.len() as u64 >= self.every {
            self.flush()
        } else {
            Ok(())
        }
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
