//! Counts the objects of files, reports each if requested, and prints the summary.

use std::fmt::Display;
use std::time::Instant;

use clap::Args;
use junctura::{Code, Error, Given, Result, Schema};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::progress::WorkProgress;
use junctura_terminal::size;
use serde_json::{Value, json};

use super::files::InputPosition;
use crate::exit::proposals::complete;

/// Maximum number of failures that are reported one by one while the others continue.
const FAILURES_TOLD: u64 = 10;
/// Codes of failures that concern one object only.
const OF_ONE_OBJECT: [Code; 6] = [
    Code::AlreadyExists,
    Code::SchemaMismatch,
    Code::TypeMismatch,
    Code::InvalidArgument,
    Code::TooLarge,
    Code::Corrupt,
];

/// Codes of further failures that concern one file only.
const OF_ONE_FILE: [Code; 2] = [Code::Conflict, Code::Io];

/// Selects the reports: single objects, or only counts.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TellArguments {
    /// Continue after a damaged message, and after an object that is refused; the exit status still reports it. Without this option
    /// `put` only reads the other files
    #[arg(long)]
    keep_going: bool,
    /// Print version, key and schema of each object once it is visible
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON: a line for each object once it is visible, then a summary
    #[arg(long)]
    json: bool,
    /// Print no summary
    #[arg(short, long, conflicts_with_all = ["json", "verbose"])]
    quiet: bool,
}

/// An object whose acknowledgment is pending.
pub(crate) struct OfferOrigin {
    pub(crate) place: InputPosition,
    bytes: u64,
    key: String,
    schema: String,
}

impl OfferOrigin {
    pub(crate) fn new(place: &InputPosition, bytes: u64, key: String, schema: &str) -> OfferOrigin {
        OfferOrigin {
            place: place.clone(),
            bytes,
            key,
            schema: schema.to_owned(),
        }
    }
}

impl TellArguments {
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }
}

/// Counts and reports objects.
pub(crate) struct PutTally {
    arguments: TellArguments,
    /// Whether other files are read after one that failed.
    has_several: bool,
    began: Instant,
    objects: u64,
    bytes: u64,
    failed: u64,
    repeated: u64,
    hidden: u64,
    out: StandardOutput,
    progress: WorkProgress,
    failure: Option<Error>,
}

impl PutTally {
    /// Begins, with the total size if it is known.
    pub(crate) fn new(arguments: TellArguments, expected_bytes: Option<u64>) -> PutTally {
        let mut progress = WorkProgress::new();
        progress.expect(expected_bytes);
        PutTally {
            arguments,
            has_several: false,
            began: Instant::now(),
            objects: 0,
            bytes: 0,
            failed: 0,
            repeated: 0,
            hidden: 0,
            out: StandardOutput::new(),
            progress,
            failure: None,
        }
    }

    /// Notes how many files are read.
    pub(crate) fn of_files(mut self, count: usize) -> PutTally {
        self.has_several = count > 1;
        self
    }

    /// Whether some objects failed.
    pub(crate) fn has_failures(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether objects are reported one by one.
    pub(crate) fn tells(&self) -> bool {
        self.arguments.verbose || self.arguments.json
    }

    /// Prints a line without disturbing the progress bar.
    pub(crate) fn say(&self, text: &dyn Display) {
        self.progress.suspend(|| say!("junctura: {text}"));
    }

    /// Adds a pending object.
    pub(crate) fn origin(
        &self,
        place: &InputPosition,
        schema: &Schema,
        attributes: &[(&str, Given<'_>)],
        bytes: usize,
    ) -> Result<OfferOrigin> {
        let key = if self.tells() {
            key(schema, attributes)?
        } else {
            String::new()
        };
        let name = if self.tells() { schema.name() } else { "" };
        Ok(OfferOrigin::new(place, bytes as u64, key, name))
    }

    /// Counts an acknowledged object.
    pub(crate) fn count(&mut self, origin: &OfferOrigin) {
        self.objects += 1;
        self.bytes += origin.bytes;
    }

    /// Records a failure. Returns it as an error, unless only this object is concerned and the others shall continue.
    pub(crate) fn failed(&mut self, error: Error) -> Result<()> {
        self.failed += 1;
        if !self.arguments.keep_going && error.code() == Code::Corrupt {
            let cause = format!("{}; --keep-going continues with the next intact message", error.cause());
            return Err(Error::new(error.code(), error.subject(), cause));
        }
        if !self.arguments.keep_going && !self.has_several || !OF_ONE_OBJECT.contains(&error.code()) {
            return Err(error);
        }
        self.note(error);
        Ok(())
    }

    /// Records that a file could not be read to its end. Returns it as an error, unless only this file is concerned and there are
    /// others.
    pub(crate) fn file_failed(&mut self, error: Error) -> Result<()> {
        let is_of_one = OF_ONE_OBJECT.contains(&error.code()) || OF_ONE_FILE.contains(&error.code());
        if !self.has_several || !is_of_one {
            return Err(error);
        }
        self.failed += u64::from(error.code() != Code::Corrupt);
        self.note(error);
        Ok(())
    }

    fn note(&mut self, error: Error) {
        match self.failed {
            ..=FAILURES_TOLD => self.say(&complete(error.clone())),
            number if number == FAILURES_TOLD + 1 => self.say(&"more failures are only counted"),
            _ => {}
        }
        self.failure.get_or_insert(error);
    }

    /// Counts objects that failed together with a reported one.
    pub(crate) fn miss(&mut self, objects: u64) {
        self.failed += objects;
    }

    /// Counts an object that replaced an earlier one of the same file.
    pub(crate) fn repeated(&mut self) {
        self.repeated += 1;
    }

    /// Counts fields of messages that no object describes.
    pub(crate) fn hid(&mut self, fields: u32) {
        self.hidden += u64::from(fields);
    }

    /// Numbers of visible and of failed objects.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> [u64; 2] {
        [self.objects, self.failed]
    }

    /// Shows the progress of reading.
    pub(crate) fn show(&mut self, position: u64) {
        self.progress.show(position, self.objects);
    }

    /// Reports one object, with its version if it has one.
    pub(crate) fn tell(&mut self, origin: &OfferOrigin, version: Option<&str>) -> Result<()> {
        if self.arguments.json {
            return self.out.json(&json!({
                "schema": origin.schema, "key": origin.key, "version": version, "bytes": origin.bytes, "file": &*origin.place.file,
                "message": origin.place.message, "field": origin.place.field,
            }));
        }
        if self.arguments.verbose {
            let version = version.unwrap_or("staged");
            writeln!(self.out, "{version} {} (schema {})", origin.key, origin.schema)?;
        }
        Ok(())
    }

    /// Flushes the reports.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Prints the summary; returns the first failure.
    pub(crate) fn finish(mut self, outcome: Result<()>, besides: &[(&str, u64)]) -> Result<()> {
        self.progress.end();
        let seconds = self.began.elapsed().as_secs_f64();
        if self.arguments.json {
            let mut summary = json!({
                "objects": self.objects, "bytes": self.bytes, "seconds": (seconds * 1e6).round() / 1e6,
                "failed": self.failed.max(u64::from(outcome.is_err())),
            });
            for (name, number) in besides {
                summary[name.replace(' ', "_")] = Value::from(*number);
            }
            for (name, number) in [("replaced", self.repeated), ("hidden_fields", self.hidden)] {
                summary[name] = Value::from(number);
            }
            self.out.json(&summary)?;
        } else if !self.arguments.quiet && (self.objects > 0 || outcome.is_ok()) {
            let s = if self.objects == 1 { "" } else { "s" };
            let mut besides: Vec<String> = besides
                .iter()
                .filter(|(_, number)| *number > 0)
                .map(|(name, number)| format!(", {number} {name}"))
                .collect();
            if self.repeated > 0 {
                let (repeated, objects) = (self.repeated, self.objects);
                besides.push(format!(", {repeated} of {objects} replaced others of this file"));
            }
            if self.hidden > 0 {
                let s = if self.hidden == 1 { "" } else { "s" };
                besides.push(format!(
                    ", {} more field{s} hidden in messages of several fields",
                    self.hidden
                ));
            }
            let (objects, bytes) = (self.objects, size::bytes(self.bytes));
            writeln!(
                self.out,
                "{objects} object{s}, {bytes}, {seconds:.2} s{}",
                besides.concat()
            )?;
        }
        self.out.flush()?;
        outcome?;
        let (failed, objects) = (self.failed, self.objects);
        self.failure.map_or(Ok(()), |first| {
            let cause = format!("{} ({failed} failed in all, {objects} are there)", first.cause());
            Err(Error::new(first.code(), first.subject(), cause))
        })
    }
}

fn key(schema: &Schema, attributes: &[(&str, Given<'_>)]) -> Result<String> {
    let mut record = Vec::new();
    schema.record(attributes.iter().copied(), &mut record)?;
    Ok(schema.key_text(junctura_model::RecordRef::trusted(&record)))
}
