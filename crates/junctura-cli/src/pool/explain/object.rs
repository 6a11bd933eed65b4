//! Objects as text and as JSON: what keeps each in memory, or why it was removed.

use junctura::Result;
use junctura::reasons::{ExplainedObject, ObjectHolder, RetentionReason};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use super::words;

/// Writes objects, and how many more match.
pub(super) fn write(objects: &[ExplainedObject], more: u64, json: bool, out: &mut StandardOutput) -> Result<()> {
    if json {
        return out.json(&json!({"objects": objects, "more": more}));
    }
    for object in objects {
        write_one(object, out)?;
    }
    if more > 0 {
        writeln!(out, "and {}", words::count(more, "more object"))?;
    }
    Ok(())
}

fn write_one(object: &ExplainedObject, out: &mut StandardOutput) -> Result<()> {
    let version = Some(object.version.as_str()).filter(|version| !version.is_empty());
    let version = version.map_or_else(String::new, |version| format!("   version {version}"));
    writeln!(out, "{}{version}", object.key)?;
    if object.state == "gone" || object.state == "declined" {
        return write_gone(object, out);
    }
    let producer = object.producer.as_ref().map_or_else(String::new, |producer| {
        format!(", offered by {}", words::client(producer))
    });
    writeln!(
        out,
        "  {:<10} {}, {}{producer}",
        object.state,
        size::bytes(object.bytes),
        place(object)
    )?;
    for because in &object.because {
        write_cause(object, because, out)?;
    }
    if let Some(place) = &object.archived {
        let place = if place.is_empty() {
            "its place is not known"
        } else {
            place
        };
        writeln!(out, "  archived   in a store: {place}")?;
    }
    if object.kept_versions > 0 {
        let versions = words::count(object.kept_versions, "earlier version");
        writeln!(out, "  versions   requirements also keep {versions}")?;
    }
    if object.because.is_empty() {
        writeln!(out, "  kept by    nothing")?;
    }
    Ok(())
}

fn place(object: &ExplainedObject) -> String {
    let place = match (object.place.as_str(), object.segment, object.slot) {
        ("slot", Some(segment), Some(slot)) => format!("in memory (segment {segment}, slot {slot})"),
        ("message", _, _) => "in the memory of the server".to_owned(),
        ("file", _, _) => "in the file tier".to_owned(),
        _ => "without its payload".to_owned(),
    };
    if object.is_spilling {
        return format!("{place}, on its way to the file tier");
    }
    place
}

fn write_cause(object: &ExplainedObject, because: &str, out: &mut StandardOutput) -> Result<()> {
    match because {
        "retention" => {
            let retention = object.retention.as_ref().map(retention).unwrap_or_default();
            writeln!(out, "  retention  {retention}")
        }
        "owed" => {
            for owed in &object.owed {
                writeln!(
                    out,
                    "  owed       for {} to {}",
                    words::time(owed.owed_ms),
                    words::requirement(&owed.requirement)
                )?;
            }
            write_rest(object.owed_count, object.owed.len(), "requirement", out)
        }
        "held" => {
            for holder in &object.holders {
                writeln!(out, "  held       {}", held(object, holder))?;
            }
            write_rest(
                object.holder_count,
                object.holders.len(),
                "delivery that is not released",
                out,
            )
        }
        "staged" => {
            let bundle = object.bundle.as_ref().map(words::bundle).unwrap_or_default();
            writeln!(out, "  staged     {bundle}")
        }
        _ => writeln!(out, "  leaving    the server is removing it"),
    }
}

fn write_rest(all: u64, shown: usize, what: &str, out: &mut StandardOutput) -> Result<()> {
    match all.saturating_sub(shown as u64) {
        0 => Ok(()),
        1 => writeln!(out, "             and 1 more {what}"),
        more => writeln!(out, "             and {more} more: {what}"),
    }
}

fn retention(one: &RetentionReason) -> String {
    match (one.rule.as_str(), one.releases, one.ends_in_ms) {
        ("until_withdrawn", _, _) => "until it is withdrawn".to_owned(),
        ("released", Some(1), _) => "until 1 more consumer has released it".to_owned(),
        ("released", Some(left), _) => format!("until {left} more consumers have released it"),
        ("for", _, Some(ends)) => format!("it is removed in {}", words::time(ends)),
        ("for", _, None) => "for a time, which begins when it is visible".to_owned(),
        ("released_by", _, _) if one.names.is_empty() => "until its consumers have released it".to_owned(),
        ("released_by", _, _) => format!(
            "until requirements with these names exist and have released it: {}",
            one.names.join(", ")
        ),
        ("together", _, _) => "as long as the other objects of its bundle".to_owned(),
        _ => "over".to_owned(),
    }
}

fn held(object: &ExplainedObject, holder: &ObjectHolder) -> String {
    let client = words::client(&holder.client);
    let owed = object
        .owed
        .iter()
        .find(|owed| Some(owed.requirement.number) == holder.requirement);
    let through = owed.map(|owed| format!(", through {}", words::requirement_name(&owed.requirement)));
    let released = if holder.is_released {
        ", released; it still reads the payload"
    } else {
        ""
    };
    let since = holder.held_ms.map(|held| format!(", for {}", words::time(held)));
    let (through, since) = (through.unwrap_or_default(), since.unwrap_or_default());
    format!("{client}{through}{since}{released}")
}

fn write_gone(object: &ExplainedObject, out: &mut StandardOutput) -> Result<()> {
    let ago = object.gone_ms.map(words::time).unwrap_or_default();
    let by = object.withdrawn_by.as_ref().map(|name| format!(" by {name}"));
    let withdrawn = format!("withdrawn{}", by.unwrap_or_default());
    let why = match (object.state.as_str(), object.reason.as_deref()) {
        ("declined", _) => "not offered, since nothing wanted it",
        (_, Some("withdrawn")) => withdrawn.as_str(),
        (_, Some("expired")) => "its retention ended",
        (_, Some("archived")) => "evicted: it is archived, and memory was short",
        _ => "not known",
    };
    writeln!(out, "  {:<10} {why}, {ago} ago", object.state)?;
    if let Some(place) = object.archived.as_deref().filter(|place| !place.is_empty()) {
        writeln!(out, "  archived   in a store: {place}")?;
    }
    Ok(())
}
