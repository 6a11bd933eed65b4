//! The keepers of memory, as text and as JSON.

use junctura::reasons::{ExplainedObject, KeptByClient, KeptSum, MemoryKeepers};
use junctura::{Code, Error, Pool, Result};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;

use super::words;
use crate::exit::proposals::complete_message;

/// The most clients that the message of a full pool names.
const HOLDERS_MAX: usize = 10;

pub(super) fn explain(pool: &Pool, json: bool, out: &mut StandardOutput) -> Result<()> {
    let keepers = pool.reasons().keepers()?;
    if json {
        super::print(out, "memory", &keepers)?;
    } else {
        write(&keepers, out)?;
    }
    if keepers.memory.is_some_and(|memory| memory.used_bytes == 0) {
        out.flush()?;
        return Err(Error::new(Code::NotFound, "memory", "no memory is in use"));
    }
    Ok(())
}

/// Writes what keeps most of a full memory, an object of these with its producer, and how to free it.
pub(super) fn write_causes(pool: &Pool, out: &mut StandardOutput) -> Result<()> {
    let causes = causes(pool)?;
    causes.iter().try_for_each(|cause| writeln!(out, "{cause}"))
}

/// Returns the lines of [`write_causes`].
pub(super) fn causes(pool: &Pool) -> Result<Vec<String>> {
    causes_of(pool, &pool.reasons().keepers()?)
}

/// Returns the lines of [`write_causes`] for these keepers.
pub(super) fn causes_of(pool: &Pool, keepers: &MemoryKeepers) -> Result<Vec<String>> {
    let Some(most) = keepers.sums.iter().max_by_key(|sum| (sum.alone_bytes, sum.bytes)) else {
        return Ok(Vec::new());
    };
    let memory = keepers.memory;
    let budget = memory.map_or_else(String::new, |memory| {
        format!(" of {}", size::bytes(memory.budget_bytes))
    });
    let mut causes = vec![format!(
        "most memory is kept by objects {}: {}, {}{budget}",
        kept_words(most),
        words::count(most.objects, "object"),
        size::bytes(if most.alone_bytes == 0 {
            most.bytes
        } else {
            most.alone_bytes
        })
    )];
    // An object whose reason is another one may be among the first.
    let first = pool.reasons().explain_selector("")?.objects;
    let is_kept = |object: &&ExplainedObject| {
        let rule = object.retention.as_ref().map(|retention| retention.rule.as_str());
        rule == Some(most.because.as_str()) || object.because.contains(&most.because)
    };
    if let Some(object) = first.iter().find(is_kept) {
        let producer = object.producer.as_ref().map_or_else(String::new, |producer| {
            format!(", offered by {}", words::client(producer))
        });
        causes.push(format!("  for example {}{producer}", object.key));
    }
    let remedy = format!("  {}; `junctura explain --memory` shows all", remedy(most));
    causes.push(complete_message(&remedy));
    causes.extend(other_causes(keepers, most));
    Ok(causes)
}

/// Returns a line for each client that holds objects of a tenth of the memory or more: no broken requirement frees these.
pub(super) fn holders(keepers: &MemoryKeepers) -> Vec<String> {
    let Some(memory) = keepers.memory else {
        return Vec::new();
    };
    let much = memory.budget_bytes.max(10) / 10;
    let mut holders: Vec<&KeptByClient> = keepers.clients.iter().filter(|one| one.held_bytes >= much).collect();
    holders.sort_unstable_by_key(|one| std::cmp::Reverse(one.held_bytes));
    holders.truncate(HOLDERS_MAX);
    let line = |one: &KeptByClient| {
        format!(
            "{} holds {}, {}, until it releases them",
            words::client(&one.client),
            words::count(one.held, "object"),
            size::bytes(one.held_bytes)
        )
    };
    holders.into_iter().map(line).collect()
}

/// Returns a line for each other reason that keeps a tenth of the first one's bytes or more: it remains when that one ends.
fn other_causes(keepers: &MemoryKeepers, most: &KeptSum) -> Vec<String> {
    let is_much = |sum: &&KeptSum| sum.because != most.because && sum.bytes >= most.bytes.max(10) / 10;
    let line = |sum: &KeptSum| {
        let owner = match sum.because.as_str() {
            "held" => keepers
                .clients
                .iter()
                .max_by_key(|one| one.held_bytes)
                .map(|one| format!("; most by {}", words::client(&one.client))),
            "owed" => keepers
                .requirements
                .first()
                .map(|one| format!("; {}", words::requirement(one))),
            _ => None,
        };
        format!(
            "  also kept by objects {}: {}, {}{}",
            kept_words(sum),
            words::count(sum.objects, "object"),
            size::bytes(sum.bytes),
            owner.unwrap_or_default()
        )
    };
    keepers.sums.iter().filter(is_much).map(line).collect()
}

fn kept_words(sum: &KeptSum) -> &str {
    match sum.because.as_str() {
        "until_withdrawn" => "that stay until they are withdrawn",
        "released" => "that stay until consumers have released them",
        "for" => "that stay for a time",
        "released_by" => "that stay until named consumers have released them",
        "together" => "that stay as long as their bundle",
        "owed" => "that requirements are owed",
        "held" => "that clients hold",
        "staged" => "of bundles that are not visible",
        "leaving" => "that are being removed",
        other => other,
    }
}

/// The remedy that frees the memory of objects that are kept for this reason.
fn remedy(sum: &KeptSum) -> &'static str {
    match sum.because.as_str() {
        "until_withdrawn" => {
            "`junctura pool withdraw-all SELECTOR` frees it; offers with a retention, such as released:1 or 1h, free it by \
             themselves"
        }
        "for" => "it is free after that time, or by `junctura pool withdraw-all SELECTOR`",
        "released" | "released_by" => "it is free when its consumers have received and released it",
        "owed" => "it is free when the requirements' readers have released it, or by `junctura pool retract NAME`",
        "held" => "it is free when the clients have released it",
        "staged" | "together" => "it is free when the bundles are complete or aborted, and their objects are released",
        _ => "the server frees it",
    }
}

fn write(keepers: &MemoryKeepers, out: &mut StandardOutput) -> Result<()> {
    if let Some(memory) = keepers.memory {
        writeln!(
            out,
            "memory        {} of {}: {} in segments, {} inside messages; payloads fill {} of the segments",
            size::bytes(memory.used_bytes),
            size::bytes(memory.budget_bytes),
            size::bytes(memory.segment_bytes),
            size::bytes(memory.inline_bytes),
            size::bytes(memory.occupied_bytes)
        )?;
        if memory.spilled_bytes > 0 {
            writeln!(out, "in the file   {}", size::bytes(memory.spilled_bytes))?;
        }
    }
    for sum in &keepers.sums {
        writeln!(
            out,
            "{:<13} {} in {}; nothing else keeps {}",
            sum_words(sum),
            size::bytes(sum.bytes),
            words::count(sum.objects, "object"),
            size::bytes(sum.alone_bytes)
        )?;
    }
    for requirement in &keepers.requirements {
        writeln!(out, "owed to       {}", words::requirement(requirement))?;
    }
    for one in &keepers.clients {
        writeln!(
            out,
            "client        {}: leases {}, of which {} without a payload; holds {}, {}",
            words::client(&one.client),
            size::bytes(one.leased_bytes),
            size::bytes(one.unused_bytes),
            words::count(one.held, "object"),
            size::bytes(one.held_bytes)
        )?;
    }
    for bundle in &keepers.bundles {
        writeln!(
            out,
            "staged        {}, {}",
            words::bundle(bundle),
            size::bytes(bundle.bytes)
        )?;
    }
    for name in &keepers.names {
        writeln!(
            out,
            "awaited       {:?} stands for no requirement yet: {}, {}",
            name.name,
            words::count(name.objects, "object"),
            size::bytes(name.bytes)
        )?;
    }
    Ok(())
}

fn sum_words(sum: &KeptSum) -> &str {
    match sum.because.as_str() {
        "until_withdrawn" => "not withdrawn",
        "released" => "to be released",
        "for" => "for a time",
        "released_by" => "for names",
        "together" => "as its bundle",
        "owed" => "owed",
        "held" => "held",
        "staged" => "staged",
        "leaving" => "leaving",
        other => other,
    }
}
