//! `junctura watch --store` prints new commits of a store.

use junctura::Result;
use junctura_store::{PayloadCodec, StoredObject};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::json;
use crate::store::query::following::{FollowEnd, FollowedStep, follow};

/// Prints each object when it is committed.
pub(crate) fn watch(
    url: &str,
    selectors: &[String],
    until: FollowEnd,
    as_json: bool,
    interrupt: &InterruptFlag,
) -> Result<()> {
    let store = crate::store::open(url)?;
    let selector = crate::store::selector_of_coming(selectors, &store)?;
    let now = store.snapshot()?.commit();
    say!("junctura: watching {url}");
    let mut out = StandardOutput::new();
    follow(&store, &selector, Some(now), until, interrupt, |step| match step {
        FollowedStep::Wait => out.flush(),
        FollowedStep::New(_, objects) => objects.iter().try_for_each(|object| {
            interrupt.check()?;
            if as_json {
                out.json(&document(object))
            } else {
                tell(object, &mut out)
            }
        }),
    })
}

fn tell(object: &StoredObject<'_>, out: &mut StandardOutput) -> Result<()> {
    let (key, bytes, place) = (object.key(), size::bytes(object.bytes()), object.location());
    writeln!(
        out,
        "archived {} {key} {bytes} in {} at {}",
        object.commit(),
        object.uri(),
        place.offset
    )
}

fn document(object: &StoredObject<'_>) -> serde_json::Value {
    let (described, place) = (object.describe(), object.location());
    json!({
        "event": "archived",
        "key": described.key(),
        "schema": described.schema().name(),
        "version": object.version().map(|version| version.to_string()),
        "commit": object.commit(),
        "bytes": object.bytes(),
        "attributes": json::attributes(described.schema(), described.attributes()),
        "uri": object.uri(),
        "offset": place.offset,
        "stored_bytes": place.length,
        "codec": place.codec.map(PayloadCodec::name),
    })
}
