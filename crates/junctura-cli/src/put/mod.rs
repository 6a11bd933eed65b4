//! `junctura put`: files become objects.
//!
//! Of a GRIB file each message is an object, described by its own header. Any other file is one object, described by the
//! user. Files are read from front to back with bounded memory: small messages through a buffer, large ones straight into
//! the pool; offers are not awaited one by one.

mod feed;
mod grib;
mod header;
mod input;
mod messages;

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use junctura::{Allocation, Bundle, Code, Error, Pool, Result, Retention, Schema};
use junctura_grib::Message;

use crate::attributes::{Pair, pair};
use crate::bundle::TermsArguments;
use crate::interrupt::Interrupt;
use crate::size;
use crate::url::PoolArguments;
use feed::{Ending, Feed, Payload, Place, Told};
use grib::{Next, Splitter};
use input::Input;

pub use messages::each_message;

const EXAMPLES: &str = "Examples:
  junctura put forecast.grib                                   each message by its header
  junctura put --set class=rd --set expver=test run/*.grib2    the same, partly renamed
  junctura put plume.png --schema free --set name=plume        any file, described here
  ssh cluster cat out.grib | junctura put -                    from a pipe, while it comes
  junctura put step24.grib --retention released:2              gone when two consumers have had it
  junctura put step24.grib --retention released_by:archive     gone when the group archive has had it
  junctura put step24.grib --retain 10min                      gone after ten minutes
  junctura put --bundle run/step=24 part?.grib                 all of them visible at one point
When a file is damaged, what was good before it is in the pool, and the error names the file, the message and the byte.";

/// Put files into the pool
///
/// Each message of a GRIB file (edition 1 or 2, recognised by its content) becomes an object of the `mars` schema, with the
/// attributes that its header gives: class, stream, date, time, step, levelist, param and so on. Any other file becomes one
/// object with the attributes given by --set; where `name` is part of the key and not given, it is the file's name.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Files to put; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// An attribute for each object, whatever the header says
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<Pair>,
    /// The schema that describes the objects (default: mars for GRIB, else the pool's first)
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// What the files are
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// How long the objects stay: until withdrawn, until released by N consumers, or for a time such as 10min or 1h30m
    /// (default: as the schema says)
    #[arg(long, visible_alias = "retain", value_name = "withdrawn|released:N|released_by:NAME,...|TIME", value_parser = retention)]
    retention: Option<Retention>,
    /// Put only what somebody wants: follows it, requires it or waits for it
    #[arg(long, conflicts_with = "bundle")]
    if_wanted: bool,
    /// Put them into the bundle of this path: all become visible together. At the end it is sealed, unless --members or --open
    /// is given, or something failed
    #[arg(long, value_name = "PATH")]
    bundle: Option<String>,
    #[command(flatten)]
    terms: TermsArguments,
    /// Leave the bundle open for others
    #[arg(long, requires = "bundle", conflicts_with_all = ["members", "wait"])]
    open: bool,
    /// Wait until the bundle is visible, whoever brings the rest of its members
    #[arg(long, requires_all = ["bundle", "members"])]
    wait: bool,
    /// How long to wait for memory when the pool is full
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = size::parse_duration)]
    timeout: Duration,
    /// Go on after a damaged message or an object that is refused; the exit status still tells
    #[arg(long)]
    keep_going: bool,
    /// How many offers may be unacknowledged
    #[arg(long, value_name = "N", default_value_t = 64, hide = true)]
    window: usize,
    /// Print version and key of each object once it is there
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON: a line for each object once it is there, then a summary
    #[arg(long)]
    json: bool,
    /// Print no summary
    #[arg(short, long, conflicts_with_all = ["json", "verbose"])]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Look at the first bytes
    Auto,
    /// GRIB messages
    Grib,
    /// One object, whatever the bytes are
    Bytes,
}

/// Reads `withdrawn`, `released:N` or a time.
fn retention(text: &str) -> std::result::Result<Retention, String> {
    text.parse().map_err(|error: Error| error.cause().to_owned())
}

/// Puts.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let began = Instant::now();
    let interrupt = Interrupt::install()?;
    let builder = arguments
        .pool
        .builder("junctura put")
        .offer_timeout(Some(arguments.timeout));
    let pool = interrupt.watch(builder).open()?;
    let told = match (arguments.verbose, arguments.json) {
        (_, true) => Told::Json,
        (true, _) => Told::Lines,
        _ => Told::Nothing,
    };
    let bundle = arguments.open_bundle(&pool)?;
    let mut feed = Feed::new(
        &pool,
        bundle.as_ref(),
        arguments.retention.clone(),
        arguments.window,
        told,
    )?;
    feed.keep_going(arguments.keep_going);
    feed.if_wanted(arguments.if_wanted);
    feed.expect(arguments.total_bytes());
    let outcome = arguments.put_all(&mut feed, &interrupt);
    feed.finish(outcome, arguments.ending(), began, !arguments.quiet)
}

impl Arguments {
    fn open_bundle(&self, pool: &Pool) -> Result<Option<Bundle>> {
        let bundle = self.bundle.as_ref().map(|path| self.terms.open(pool, path, None));
        if bundle.is_none() && (self.terms.members.is_some() || !self.terms.about.is_empty()) {
            let cause = "--members and --about are about the bundle that --bundle names";
            return Err(Error::new(Code::InvalidArgument, "put", cause));
        }
        bundle.transpose()
    }

    /// What is done with the bundle in the end.
    fn ending(&self) -> Ending {
        match (self.open || self.terms.members.is_some(), self.wait) {
            (_, true) => Ending::Wait,
            (true, false) => Ending::Leave,
            (false, false) => Ending::Seal,
        }
    }

    fn put_all(&self, feed: &mut Feed<'_>, interrupt: &Interrupt) -> Result<()> {
        let mut before = 0;
        for path in &self.files {
            let mut input = Input::open(path, interrupt)?;
            let bytes = input.bytes().unwrap_or(0);
            let is_grib = match self.format {
                Format::Grib => true,
                Format::Bytes => false,
                Format::Auto => grib::is_grib(&mut input, &mut || feed.flush())?,
            };
            let schema = self.schema(feed.pool(), is_grib)?;
            if is_grib {
                self.put_messages(feed, &schema, Splitter::new(input), before)?;
            } else {
                self.put_whole(feed, &schema, input, path)?;
            }
            before += bytes;
            feed.show(before);
        }
        Ok(())
    }

    /// How much there is to read, if all of it is in files.
    fn total_bytes(&self) -> Option<u64> {
        self.files
            .iter()
            .map(|path| path.metadata().ok().filter(Metadata::is_file).map(|file| file.len()))
            .sum()
    }

    fn schema(&self, pool: &Pool, is_grib: bool) -> Result<Arc<Schema>> {
        match &self.schema {
            Some(name) => pool.schema(Some(name)),
            None if is_grib => pool.schema(Some(header::SCHEMA)).or_else(|_| pool.schema(None)),
            None => pool.schema(None),
        }
    }

    fn put_messages(&self, feed: &mut Feed<'_>, schema: &Schema, mut splitter: Splitter, before: u64) -> Result<()> {
        let file: Arc<str> = splitter.input().name().into();
        loop {
            let room = feed.room();
            let next = splitter.next(&mut || feed.flush(), &mut |bytes| room.allocate(bytes));
            let place = Place {
                file: Arc::clone(&file),
                message: Some(splitter.number()),
            };
            let put = match next {
                Ok(Next::End) => break,
                Ok(Next::Buffered(bytes)) => {
                    let put = self.put_buffered(feed, schema, &splitter, &place, bytes);
                    splitter.take(bytes);
                    put
                }
                Ok(Next::Placed(allocation)) => self.put_placed(feed, schema, &splitter, &place, allocation),
                Ok(Next::Damaged(error)) => Err(corrupt(&file, &error)),
                Err(error) if error.code() == Code::TooLarge => Err(place.error(&error)),
                Err(error) => return Err(error),
            };
            put.or_else(|error| feed.failed(error))?;
            feed.show(before + splitter.input().position());
        }
        if splitter.number() == 0 {
            return Err(Error::new(Code::Corrupt, &*file, "there is no GRIB message in it"));
        }
        Ok(())
    }

    fn put_buffered(
        &self,
        feed: &mut Feed<'_>,
        schema: &Schema,
        splitter: &Splitter,
        place: &Place,
        bytes: usize,
    ) -> Result<()> {
        let message = splitter.message(bytes).map_err(|error| corrupt(&place.file, &error))?;
        let keys = message
            .keys()
            .map_err(|error| corrupt(&place.file, &splitter.numbered(error)))?;
        let attributes = header::attributes(&message, &keys, schema, &self.set);
        feed.offer(
            place,
            schema,
            &header::given(&attributes),
            Payload::Bytes(message.bytes()),
        )
    }

    fn put_placed(
        &self,
        feed: &mut Feed<'_>,
        schema: &Schema,
        splitter: &Splitter,
        place: &Place,
        allocation: Allocation,
    ) -> Result<()> {
        let read = Message::new(&allocation).and_then(|message| Ok((message, message.keys()?)));
        let (message, keys) = read.map_err(|error| corrupt(&place.file, &splitter.numbered(error)))?;
        let attributes = header::attributes(&message, &keys, schema, &self.set);
        feed.offer(place, schema, &header::given(&attributes), Payload::Placed(allocation))
    }

    fn put_whole(&self, feed: &mut Feed<'_>, schema: &Schema, mut input: Input, path: &Path) -> Result<()> {
        let place = Place {
            file: input.name().into(),
            message: None,
        };
        let mut set = self.set.clone();
        if let Some(name) = default_name(schema, &set, path) {
            set.push(name);
        }
        let attributes: Vec<_> = crate::attributes::given(&set).collect();
        let put = if let Some(bytes) = input.bytes() {
            let mut allocation = feed.room().allocate(bytes).map_err(|error| place.error(&error))?;
            let read = input.read_into(&mut allocation, &mut || feed.flush())?;
            if read as u64 != bytes || !input.fill(1, &mut || feed.flush())?.is_empty() {
                let cause = "it changed its size while it was read";
                return Err(Error::new(Code::Conflict, &*place.file, cause));
            }
            feed.offer(&place, schema, &attributes, Payload::Placed(allocation))
        } else {
            let bytes = read_all(&mut input, feed)?;
            feed.offer(&place, schema, &attributes, Payload::Bytes(&bytes))
        };
        put.map_err(|error| hint(&error, feed.pool(), self.schema.is_some()))
            .or_else(|error| feed.failed(error))
    }
}

/// All that comes from a pipe; how much it is, only its end tells.
fn read_all(input: &mut Input, feed: &mut Feed<'_>) -> Result<Vec<u8>> {
    let mut want = 1 << 20;
    while input.fill(want, &mut || feed.flush())?.len() >= want {
        want *= 2;
    }
    Ok(input.buffered().to_vec())
}

fn corrupt(file: &str, error: &junctura_grib::GribError) -> Error {
    Error::new(Code::Corrupt, file, error.to_string())
}

/// The file's name, where the key has a name and nobody gave one.
fn default_name(schema: &Schema, set: &[Pair], path: &Path) -> Option<Pair> {
    let id = schema.find("name").filter(|id| id.index() < schema.key_len())?;
    let is_given = set.iter().any(|pair| schema.find(&pair.name) == Some(id));
    let value = path.file_name().filter(|_| path.as_os_str() != "-" && !is_given)?;
    Some(Pair {
        name: "name".to_owned(),
        value: value.to_string_lossy().into_owned(),
    })
}

/// Says where any attributes would do, to whom did not choose a schema.
fn hint(error: &Error, pool: &Pool, chosen: bool) -> Error {
    let open = pool
        .schemas()
        .unwrap_or_default()
        .into_iter()
        .find(|schema| schema.is_open());
    match open {
        Some(open) if error.code() == Code::SchemaMismatch && !chosen => {
            let cause = format!(
                "{}; with --schema {} any attributes may be given",
                error.cause(),
                open.name()
            );
            Error::new(error.code(), error.subject(), cause)
        }
        _ => error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_are_read() {
        assert_eq!(retention("withdrawn"), Ok(Retention::UntilWithdrawn));
        assert_eq!(retention("released:3"), Ok(Retention::Released(3)));
        let archive = junctura::Consumers::new(["archive"]).unwrap();
        assert_eq!(retention("released_by:archive"), Ok(Retention::ReleasedBy(archive)));
        assert_eq!(retention("10min"), Ok(Retention::For(Duration::from_mins(10))));
        for wrong in [
            "released",
            "released:0",
            "released:-1",
            "released:",
            "0s",
            "90",
            "50d",
            "",
        ] {
            assert!(retention(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_lends_its_name_where_the_key_has_one() {
        let (free, mars) = (Schema::builtin("free").unwrap(), Schema::builtin("mars").unwrap());
        let path = Path::new("a/plume.png");
        assert_eq!(
            default_name(&free, &[], path).map(|pair| pair.value),
            Some("plume.png".to_owned())
        );
        assert_eq!(default_name(&free, &[pair("name=x").unwrap()], path), None);
        assert_eq!(default_name(&free, &[], Path::new("-")), None);
        assert_eq!(default_name(&mars, &[], path), None);
    }
}
