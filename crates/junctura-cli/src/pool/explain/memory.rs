//! The keepers of memory, as text and as JSON.

use junctura::reasons::{KeptSum, MemoryKeepers};
use junctura::{Code, Error, Pool, Result};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;

use super::words;

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
