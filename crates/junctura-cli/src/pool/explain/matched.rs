//! The matches of a selector, or the reasons why it matches nothing, as text.

use junctura::Result;
use junctura::reasons::{ExplainedSelector, IncompleteArray, NearMiss};
use junctura_terminal::output::StandardOutput;

use super::{object, words};

/// Writes an explanation.
pub(super) fn write(explained: &ExplainedSelector, out: &mut StandardOutput) -> Result<()> {
    if explained.matches > 0 {
        object::write(&explained.objects, explained.more, false, out)?;
    } else {
        match explained.of {
            0 => writeln!(out, "nothing matches: the pool has no objects")?,
            visible => writeln!(out, "nothing matches: 0 of {}", words::count(visible, "object"))?,
        }
        for miss in &explained.without {
            write_miss(miss, out)?;
        }
        if explained.of > 0 && explained.without.is_empty() {
            writeln!(out, "  nothing matches without any single condition either")?;
        }
    }
    for array in &explained.arrays {
        write_array(array, out)?;
    }
    Ok(())
}

fn write_miss(miss: &NearMiss, out: &mut StandardOutput) -> Result<()> {
    let matches = words::count(miss.matches, "object");
    writeln!(out, "  without {}: {matches}", miss.condition)?;
    let Some(values) = miss.values_text() else {
        return Ok(());
    };
    let meant = miss
        .nearest
        .as_ref()
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    writeln!(out, "    {values}{meant}")
}

fn write_array(array: &IncompleteArray, out: &mut StandardOutput) -> Result<()> {
    let epoch = array.epoch.map_or_else(String::new, |epoch| format!(", epoch {epoch}"));
    let clients: Vec<String> = array.clients.iter().map(words::client).collect();
    let open = match clients.join(", ") {
        none if none.is_empty() => "no client has it open".to_owned(),
        clients => format!("open in {clients}"),
    };
    writeln!(
        out,
        "array {}{epoch}: {} of {} pieces; {open}",
        array.key, array.pieces, array.of
    )?;
    for piece in &array.missing {
        writeln!(out, "  rank {} is missing: {}", piece.rank, piece.boxes.join(" "))?;
    }
    if array.more > 0 {
        writeln!(out, "  and {}", words::count(array.more, "more rank"))?;
    }
    Ok(())
}
