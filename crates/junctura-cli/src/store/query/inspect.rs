//! `junctura store inspect` shows the location of the bytes of each object.

use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_store::{PayloadCodec, StoredObject};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::store::query::following::{FollowEnd, FollowedStep, follow};
use crate::store::{NOTHING_MATCHES, StoreArguments, VersionsArguments};

const EXAMPLES: &str = "Examples:
  junctura store inspect --store /data/archive param=t,step=6
  junctura store inspect --store /data/archive --after 41              objects of commits after the 41st
  junctura store inspect --store /data/archive --after 41 --follow     and of new commits, until Ctrl-C
  junctura store inspect --store /data/archive --json class=od | jq -r '[.uri, .offset, .bytes] | @tsv'";

/// Show the locations of objects in a store
///
/// Prints a line for each object: the URI of its file, the first byte, the number of bytes, and the key. Other programs can read the
/// bytes there for the snapshot age of the store. For a compressed object, the codec follows the number; its tools
/// decompress the bytes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Selects objects: all selectors must match; default: all objects
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    versions: VersionsArguments,
    /// Continue with new commits: first existing objects, or with --after every version since that commit
    #[arg(long, conflicts_with = "all_versions")]
    follow: bool,
    /// Stop after this many objects
    #[arg(long, value_name = "N", requires = "follow")]
    count: Option<u64>,
    /// Stop after this time: with exit status 0, or 4 if fewer than --count objects were committed
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, requires = "follow")]
    timeout: Option<Duration>,
    /// Print JSON: a line for each object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &InspectArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    let mut out = StandardOutput::new();
    if arguments.follow {
        let (after, until) = (
            arguments.versions.after(),
            FollowEnd::new(arguments.count, arguments.timeout),
        );
        return follow(&store, &selector, after, until, &interrupt, |step| match step {
            FollowedStep::Wait => out.flush(),
            FollowedStep::New(_, objects) => objects.iter().try_for_each(|object| {
                interrupt.check()?;
                arguments.print(object, &mut out)
            }),
        });
    }
    let snapshot = store.snapshot()?;
    let listing = arguments.versions.list(&snapshot, &selector)?;
    if listing.is_empty() {
        return Err(Error::new(Code::NotFound, selector, NOTHING_MATCHES));
    }
    for object in &listing {
        interrupt.check()?;
        arguments.print(&object, &mut out)?;
    }
    out.flush()
}

impl InspectArguments {
    fn print(&self, object: &StoredObject<'_>, out: &mut StandardOutput) -> Result<()> {
        let (place, key) = (object.location(), object.key());
        let uri = object.uri();
        if !self.json {
            let codec = place.codec.map_or(String::new(), |codec| format!("({})", codec.name()));
            return writeln!(out, "{uri} {} {}{codec} {key}", place.offset, place.length);
        }
        let checksum = format!("{:08x}", object.checksum());
        out.json(&json!({
            "key": key, "schema": object.schema().name(), "uri": uri, "offset": place.offset, "bytes": place.length,
            "codec": place.codec.map(PayloadCodec::name), "unpacked_bytes": object.bytes(),
            "crc32c": checksum, "commit": object.commit(),
            "version": object.version().map(|version| version.to_string()),
        }))
    }
}
