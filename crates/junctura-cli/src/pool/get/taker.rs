//! Writes received payloads and reports them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use junctura::{Code, Error, Gap, Result};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use super::got::ReceivedObject;
use super::sink::{self, PayloadSink, WrittenPayload};
use super::template::{self, NameTemplate};
use crate::json;

/// Maximum number of unwritten objects that are reported one by one.
const UNWRITTEN_TOLD_MAX: u64 = 100;

/// Destination of payloads.
#[derive(Args, Clone, Debug)]
pub(crate) struct IntoArguments {
    /// A file, a folder for one file per object, or - for standard output (the default if it is not a terminal)
    #[arg(short, long, value_name = "FILE|FOLDER|-")]
    out: Option<PathBuf>,
    /// Write each object to its own file with this name [default: {key}{ext}]
    #[arg(long, value_name = "NAME", value_parser = NameTemplate::parse)]
    template: Option<NameTemplate>,
    /// Print a JSON line for each object, then a summary; needs -o FILE or FOLDER
    #[arg(long)]
    json: bool,
    /// Print no summary
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

impl IntoArguments {
    pub(super) fn is_one_file(&self) -> bool {
        self.template.is_none() && self.out.as_deref().is_some_and(sink::is_regular)
    }

    /// The same for several versions of a key: each version has its own file.
    pub(crate) fn of_versions(&self) -> Self {
        let mut into = self.clone();
        if into.template.is_none() && into.out.as_deref().is_some_and(sink::is_folder) {
            into.template = NameTemplate::parse(template::OF_VERSIONS).ok();
        }
        into
    }

    fn check(&self) -> Result<()> {
        let to_standard_output =
            self.template.is_none() && self.out.as_deref().is_none_or(|path| path == Path::new("-"));
        if self.json && to_standard_output {
            let cause = "standard output cannot have both payloads and JSON: name a file or folder with -o";
            return Err(Error::new(Code::InvalidArgument, "--json", cause));
        }
        Ok(())
    }
}

/// Writes payloads and counts them.
pub(crate) struct PayloadTaker {
    sink: PayloadSink,
    report: Option<StandardOutput>,
    /// Whether missed objects are reported immediately.
    at_once: bool,
    began: Instant,
    objects: u64,
    bytes: u64,
    missed: Vec<String>,
    /// Number of objects that were not written, with the first reason.
    unwritten: u64,
    first: Option<Error>,
    goes_on: bool,
    quiet: bool,
}

impl PayloadTaker {
    /// Opens the destination. Missed objects are reported at the end, or immediately.
    pub(crate) fn open(arguments: &IntoArguments, at_once: bool) -> Result<PayloadTaker> {
        arguments.check()?;
        Ok(PayloadTaker {
            sink: PayloadSink::open(arguments.out.as_deref(), arguments.template.as_ref())?,
            report: arguments.json.then(StandardOutput::new),
            at_once,
            began: Instant::now(),
            objects: 0,
            bytes: 0,
            missed: Vec::new(),
            unwritten: 0,
            first: None,
            goes_on: true,
            quiet: arguments.quiet,
        })
    }

    /// Returns an error for an object that no file can be named after: another member may write it.
    pub(super) fn leave_to_others(&mut self) {
        self.goes_on = false;
    }

    pub(super) fn has_unwritten(&self) -> bool {
        self.unwritten > 0
    }

    pub(crate) fn objects(&self) -> u64 {
        self.objects
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn has_missed(&self) -> bool {
        !self.missed.is_empty()
    }

    /// Writes a payload and reports it. An object that no file can be named after is reported, and the next one may follow.
    pub(crate) fn take(&mut self, object: &impl ReceivedObject) -> Result<()> {
        let file = match self.sink.write(object)? {
            WrittenPayload::There(file) => file,
            WrittenPayload::Nameless(error) if self.goes_on => {
                self.pass_over(object, error);
                return Ok(());
            }
            WrittenPayload::Nameless(error) => return Err(error),
        };
        self.objects += 1;
        self.bytes += object.payload().len() as u64;
        let Some(report) = &mut self.report else { return Ok(()) };
        report.json(&json!({
            "key": object.key(),
            "schema": object.schema().name(),
            "version": object.version(),
            "bytes": object.payload().len(),
            "file": file.map(|file| file.display().to_string()),
            "attributes": json::attributes(object.schema(), object.attributes()),
        }))
    }

    fn pass_over(&mut self, object: &impl ReceivedObject, error: Error) {
        let about = format!("{} {}: {error}", object.version(), object.key());
        self.note_unwritten(&about, error);
    }

    /// Whether an error concerns one payload only: it was changed after its offer, or there is no memory for it. Then it is reported, and the
    /// next object may follow.
    pub(super) fn passes_over(&mut self, error: &Error) -> bool {
        let is_of_payload = self.goes_on && matches!(error.code(), Code::Corrupt | Code::TooLarge);
        if is_of_payload {
            self.note_unwritten(&error.to_string(), error.clone());
        }
        is_of_payload
    }

    fn note_unwritten(&mut self, about: &str, error: Error) {
        self.unwritten += 1;
        if self.unwritten <= UNWRITTEN_TOLD_MAX {
            say!("junctura: not written: {about}");
        }
        self.first.get_or_insert(error);
    }

    pub(super) fn miss(&mut self, gap: &Gap) {
        for item in &gap.items {
            let missed = format!("{} {} ({})", item.version, item.object.key(), gap.reason);
            if self.at_once {
                say!("junctura: missed {missed}");
            }
            self.missed.push(missed);
        }
        if gap.unnamed > 0 {
            self.missed.push(format!("{} more ({})", gap.unnamed, gap.reason));
        }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.sink.flush()?;
        self.report.as_mut().map_or(Ok(()), StandardOutput::flush)
    }

    /// Renames files, and prints the summary; missed objects are an error.
    pub(crate) fn finish(self) -> Result<()> {
        self.sink.finish()?;
        let seconds = self.began.elapsed().as_secs_f64();
        if let Some(mut report) = self.report {
            let seconds = (seconds * 1e6).round() / 1e6;
            let summary = json!({
                "objects": self.objects, "bytes": self.bytes, "seconds": seconds, "missed": self.missed,
                "not_written": self.unwritten,
            });
            report.json(&summary)?;
            report.flush()?;
        } else if !self.quiet {
            let s = if self.objects == 1 { "" } else { "s" };
            say!(
                "{} object{s}, {}, {seconds:.2} s",
                self.objects,
                size::bytes(self.bytes)
            );
        }
        if let Some(first) = self.first {
            let count = match self.unwritten {
                1 => "1 object is".to_owned(),
                more => format!("{more} objects are"),
            };
            let cause = format!("{} ({count} not written)", first.cause());
            return Err(Error::new(first.code(), first.subject(), cause));
        }
        match self.missed.as_slice() {
            [] => Ok(()),
            missed => {
                let subject = format!("{} objects that matched", missed.len());
                Err(Error::new(
                    Code::Gone,
                    subject,
                    format!(
                        "were removed, or the pool ended, before they were received:\n  {}",
                        missed.join("\n  ")
                    ),
                ))
            }
        }
    }
}
