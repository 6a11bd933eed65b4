//! Lets processes load a store, row by row, and prints what they reached.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use junctura::{Code, Error, Result, Schema};
use junctura_store::{Store, StoreLayout};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use tempfile::TempDir;

use super::arguments::{AccessPattern, CatalogueSource, StoreLoad, StoreLoadArguments};
use super::crew::{WorkerGroup, WorkerResults};
use super::objects::{RowObjects, SCHEMA};
use super::plot::RatePlot;
use super::row::{RateRow, RowFigures, RowSubject};
use super::{StorePlan, StoreRole};

const TOUCHED: &str =
    "bytes are there before; of each object first and last are stamped, and all are written, read and verified";

/// Loads a store and prints what was measured, a line for each number of writers and threads.
pub(crate) fn run(arguments: &StoreLoadArguments) -> Result<()> {
    let load = StoreLoad::of(arguments)?;
    let interrupt = InterruptFlag::install()?;
    let mut plot = plot(arguments)?;
    let mut out = StandardOutput::new();
    if !arguments.json {
        out.heading(RateRow::heading())?;
        out.flush()?;
    }
    let (mut lost, mut damaged) = (0, 0);
    for (at, (writers, threads)) in arguments.rows().enumerate() {
        let row = LoadedStore::open(arguments, &load, &interrupt, at, writers, threads)?.row()?;
        if arguments.json {
            out.json(&serde_json::to_value(&row).unwrap_or_default())?;
        } else {
            writeln!(out, "{}", row.line())?;
        }
        out.flush()?;
        if let Some(plot) = &mut plot {
            plot.add(&row);
        }
        (lost, damaged) = (lost + row.lost, damaged + row.damaged);
    }
    let drawn = plot.map_or(Ok(()), RatePlot::draw);
    if lost + damaged > 0 {
        let cause = format!("{lost} lost, {damaged} damaged");
        return Err(Error::new(Code::Corrupt, "load", cause));
    }
    drawn
}

/// The picture, if one is wanted.
fn plot(arguments: &StoreLoadArguments) -> Result<Option<RatePlot>> {
    let Some(file) = &arguments.plot else {
        return Ok(None);
    };
    let python = arguments.python.clone();
    let python = python.unwrap_or_else(|| arguments.program.python());
    RatePlot::begin(file, &python).map(Some)
}

/// A store while it is loaded by so many.
struct LoadedStore<'a> {
    arguments: &'a StoreLoadArguments,
    load: &'a StoreLoad,
    interrupt: &'a InterruptFlag,
    writers: u32,
    threads: u32,
    store: Store,
    url: String,
    objects: RowObjects,
    progress: ProgressBar,
    /// Plain files, beside the data of the store if it is in a folder.
    plain: TempDir,
    /// The store, where it is for this row alone.
    _folder: Option<TempDir>,
}

impl<'a> LoadedStore<'a> {
    fn open(
        arguments: &'a StoreLoadArguments,
        load: &'a StoreLoad,
        interrupt: &'a InterruptFlag,
        at: usize,
        writers: u32,
        threads: u32,
    ) -> Result<Self> {
        let own = arguments.store.as_deref();
        let folder = if own.is_none() {
            Some(temporary(&std::env::temp_dir())?)
        } else {
            None
        };
        let beside = folder
            .as_ref()
            .map(|folder| folder.path().join("store").display().to_string());
        let url = own.map(str::to_owned).or(beside).unwrap_or_default();
        let store = open(&url)?;
        Ok(Self {
            plain: temporary(&folder_of_plain(&store, &url)?)?,
            objects: RowObjects {
                space: load.space,
                count: load.count,
                payload_bytes: load.payload_bytes,
                every: arguments.every,
                lanes: u64::from(writers) * u64::from(threads),
                is_contended: arguments.contended,
                row: at as u64,
                run: random()?,
            },
            progress: progress(arguments.json, at, arguments.rows().count()),
            arguments,
            load,
            interrupt,
            writers,
            threads,
            store,
            url,
            _folder: folder,
        })
    }

    fn row(&self) -> Result<RateRow> {
        let mut done = RowFigures {
            limit: self
                .together("plain write", &[StoreRole::Limit], 0..1)?
                .of(StoreRole::Limit)
                .unwrap_or_default(),
            ..RowFigures::default()
        };
        match self.arguments.pattern {
            AccessPattern::A => self.write_then_read(&mut done)?,
            AccessPattern::B => self.write_while_reading(&mut done)?,
        }
        self.progress.finish_and_clear();
        Ok(RateRow::new(self.writers, self.threads, &done, self.about()))
    }

    fn write_then_read(&self, done: &mut RowFigures) -> Result<()> {
        let roles = [StoreRole::Writer, StoreRole::ReaderBack];
        let count = if self.load.read_back > 0.0 { 2 } else { 1 };
        let figures = self.together("write", &roles[..count], 0..1)?;
        done.writers = figures.of(StoreRole::Writer).unwrap_or_default();
        done.read_back = figures.of(StoreRole::ReaderBack);
        done.checkpoint_s = self.checkpoint()?;
        done.readers = self
            .together("read", &[StoreRole::Reader], 0..1)?
            .of(StoreRole::Reader)
            .unwrap_or_default();
        Ok(())
    }

    fn write_while_reading(&self, done: &mut RowFigures) -> Result<()> {
        self.together("fill", &[StoreRole::Writer], 0..1)?;
        done.checkpoint_s = self.checkpoint()?;
        let versions = 1..self.arguments.rewrites + 1;
        let figures = self.together(
            "re-write and read",
            &[StoreRole::Writer, StoreRole::ReaderAgain],
            versions,
        )?;
        done.writers = figures.of(StoreRole::Writer).unwrap_or_default();
        done.readers = figures.of(StoreRole::ReaderAgain).unwrap_or_default();
        Ok(())
    }

    /// Lets so many processes of each role work side by side.
    fn together(&self, what: &str, roles: &[StoreRole], versions: Range<u64>) -> Result<WorkerResults> {
        let rounds = versions.end - versions.start;
        self.progress.set_message(what.to_owned());
        self.progress.set_length(self.load.count * rounds);
        let of_role = |&role: &StoreRole| (0..self.writers).map(move |index| (role, index));
        let plan = |(role, index)| StorePlan {
            role,
            index,
            threads: self.threads,
            url: self.url.clone(),
            folder: self.plain.path().to_owned(),
            objects: self.objects.clone(),
            versions: versions.clone(),
            read_back: self.load.read_back,
        };
        let plans = roles.iter().flat_map(of_role).map(plan).collect();
        WorkerGroup::start(&self.arguments.program, plans, self.interrupt, &self.progress)?.go()
    }

    /// Makes the index, if requested; returns how long that took.
    fn checkpoint(&self) -> Result<Option<f64>> {
        if self.arguments.catalogue == CatalogueSource::Log {
            return Ok(None);
        }
        self.progress.set_message("checkpoint");
        let began = Instant::now();
        self.store.checkpoint()?;
        Ok(Some(began.elapsed().as_secs_f64()))
    }

    fn about(&self) -> RowSubject {
        let options = self.arguments;
        RowSubject {
            pattern: options.pattern,
            contended: options.contended,
            catalogue: options.catalogue,
            preset: options.preset,
            objects: self.load.count,
            payload_bytes: self.load.payload_bytes,
            every: options.every,
            rewrites: if options.pattern == AccessPattern::B {
                options.rewrites
            } else {
                0
            },
            read_back: self.load.read_back,
            store: self.store.uri(""),
            plain: self.plain.path().display().to_string(),
            payload_touched: TOUCHED,
        }
    }
}

/// The store at a URL, made where there is none.
fn open(url: &str) -> Result<Store> {
    let store = match Store::open_url(url) {
        Err(error) if error.code() == Code::NotFound => {
            Store::create_url(url, &builtin_schemas(), &StoreLayout::default())?
        }
        Err(error) if error.code() != Code::InvalidArgument => {
            let subject = format!("store {url}: {}", error.subject());
            return Err(Error::new(error.code(), subject, error.cause()));
        }
        opened => opened?,
    };
    let own = Schema::builtin(SCHEMA).map(|schema| schema.fingerprint());
    if Some(store.schema(Some(SCHEMA))?.fingerprint()) != own {
        let cause = format!("it has a schema {SCHEMA} of its own, and the load's objects are of the built-in one");
        return Err(Error::new(Code::InvalidArgument, format!("store {url}"), cause));
    }
    Ok(store)
}

/// The folder of plain files: beside the store's data, or on this machine, if the store is in no folder.
fn folder_of_plain(store: &Store, url: &str) -> Result<PathBuf> {
    let uri = store.uri("data/x");
    if uri.starts_with("memory:") {
        let cause = "the load's processes do not see each other's memory: they need a folder or a bucket";
        return Err(Error::new(Code::InvalidArgument, format!("store {url}"), cause));
    }
    let folder = uri
        .strip_prefix("file://")
        .and_then(|path| Path::new(path).ancestors().nth(2));
    Ok(folder.map_or_else(std::env::temp_dir, Path::to_owned))
}

fn temporary(folder: &Path) -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("junctura-hammer-").tempdir_in(folder);
    made.map_err(|error| Error::new(Code::Io, folder.display().to_string(), error.to_string()))
}

fn progress(is_json: bool, at: usize, rows: usize) -> ProgressBar {
    let progress = if is_json {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(0)
    };
    let template = format!(
        "row {} of {rows} {{wide_bar}} {{human_pos}}/{{human_len}} {{elapsed}} {{msg}}",
        at + 1
    );
    if let Ok(style) = ProgressStyle::with_template(&template) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(200));
    progress
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Error::new(Code::Io, "random numbers", errno.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

fn builtin_schemas() -> Vec<Arc<Schema>> {
    Schema::BUILTIN_NAMES
        .iter()
        .filter_map(|name| Schema::builtin(name))
        .collect()
}
