//! `junctura pool stat` shows the activity and contents of a pool in numbers.

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use junctura_terminal::visible;
use serde_json::Value;

use crate::absent::open_served;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool stat
  junctura pool stat --json | jq .memory.used_bytes";

/// Show the activity and contents of the pool
///
/// Shows objects, memory, waiting clients, named requirements, and all clients. --json prints all counters and limits of the server.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Print all counters of the server, as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &StatArguments) -> Result<()> {
    let builder = arguments.pool.reader("junctura pool stat").visitor(true);
    let pool = open_served(&arguments.pool.pool, || InterruptFlag::install()?.watch(builder).open())?;
    let text = pool.stat()?;
    let mut out = StandardOutput::new();
    if arguments.json {
        writeln!(out, "{text}")?;
        return out.flush();
    }
    let stat: Value =
        serde_json::from_str(&text).map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
    writeln!(out, "pool          {}", pool.url())?;
    writeln!(out, "incarnation   {}", number(&stat["incarnation"]))?;
    if stat["server"].is_object() {
        writeln!(
            out,
            "server        pid {}, {} resident, {:.1} s of processor time",
            number(&stat["server"]["pid"]),
            bytes(&stat["server"]["rss_bytes"]),
            stat["server"]["cpu_ns"].as_f64().unwrap_or_default() / 1e9
        )?;
        let traffic = &stat["server"]["traffic"];
        writeln!(
            out,
            "messages      received {} in {} reads, {}; sent {} in {} writes, {}; {} wake-ups",
            number(&traffic["frames_read"]),
            number(&traffic["reads"]),
            bytes(&traffic["bytes_read"]),
            number(&traffic["frames_written"]),
            number(&traffic["writes"]),
            bytes(&traffic["bytes_written"]),
            number(&traffic["wakeups"])
        )?;
    }
    if stat["draining"].is_object() {
        let [owed, undelivered] = ["owed", "undelivered"].map(|name| number(&stat["draining"][name]));
        writeln!(
            out,
            "draining      new work is refused; still to be received: {owed} by requirements, {undelivered} by follows"
        )?;
    }
    write(&stat, &mut out)?;
    out.flush()
}

fn write(stat: &Value, out: &mut StandardOutput) -> Result<()> {
    let (objects, totals, memory, interests) = (&stat["objects"], &stat["totals"], &stat["memory"], &stat["interests"]);
    writeln!(
        out,
        "objects       {} visible, {}; {} held by clients; removed: {} still held, {} tombstones",
        number(&objects["visible"]),
        bytes(&objects["visible_bytes"]),
        number(&objects["held"]),
        number(&objects["kept"]),
        number(&objects["tombstones"])
    )?;
    let bundles = &stat["bundles"];
    writeln!(
        out,
        "bundles       {} open with {} staged, {}; {} completed, {} aborted",
        number(&bundles["open"]),
        number(&bundles["staged"]),
        bytes(&bundles["staged_bytes"]),
        number(&bundles["completed"]),
        number(&bundles["aborted"])
    )?;
    writeln!(
        out,
        "memory        {} of {}: {} in {} segments, {} inside messages; attributes {} of {}",
        bytes(&memory["used_bytes"]),
        bytes(&memory["budget_bytes"]),
        bytes(&memory["segment_bytes"]),
        number(&memory["segments"]),
        bytes(&memory["inline_bytes"]),
        bytes(&memory["record_bytes"]),
        bytes(&stat["record_budget_bytes"])
    )?;
    writeln!(
        out,
        "payloads      {} in {} slots",
        bytes(&memory["occupied_bytes"]),
        number(&memory["slots_occupied"])
    )?;
    write_spill(&stat["spill"], out)?;
    writeln!(
        out,
        "offered       {}, {}",
        number(&totals["offered"]),
        bytes(&totals["offered_bytes"])
    )?;
    writeln!(
        out,
        "delivered     {}, {}",
        number(&totals["delivered"]),
        bytes(&totals["delivered_bytes"])
    )?;
    writeln!(
        out,
        "removed       {} withdrawn, {} expired, {} superseded, {} archived and evicted; {} reported to readers as missed",
        number(&totals["withdrawn"]),
        number(&totals["expired"]),
        number(&totals["superseded"]),
        number(&totals["dropped_archived"]),
        number(&totals["gaps"])
    )?;
    writeln!(
        out,
        "interests     {} demands, follows, subscriptions and requirements ({} not indexed); {} requirements ({} named)",
        number(&interests["standing"]),
        number(&interests["unindexed"]),
        number(&interests["requirements"]),
        number(&interests["named"])
    )?;
    writeln!(
        out,
        "waiting       {} withdrawals for readers, {} allocations for memory",
        number(&interests["withdrawals"]),
        number(&memory["leases_waiting"])
    )?;
    writeln!(out, "failed        {} requests", number(&totals["failed"]))?;
    let schemas: Vec<&str> = array(&stat["schemas"])
        .iter()
        .filter_map(|schema| schema["name"].as_str())
        .collect();
    writeln!(out, "schemas       {}", schemas.join(", "))?;
    for name in array(&stat["awaited"]) {
        writeln!(
            out,
            "kept for      the requirement {}, which does not exist yet: {} objects, {}",
            printable(&name["name"]),
            number(&name["objects"]),
            bytes(&name["bytes"])
        )?;
    }
    write_requirements(stat, out)?;
    write_broken(stat, out)?;
    write_clients(stat, out)
}

fn write_spill(spill: &Value, out: &mut StandardOutput) -> Result<()> {
    let Some(directory) = spill["directory"].as_str() else {
        return Ok(());
    };
    writeln!(
        out,
        "spilled       {} of {} in {directory}: {} objects, {} being written; {} written since the start, {} refused",
        bytes(&spill["used_bytes"]),
        bytes(&spill["limit_bytes"]),
        number(&spill["objects"]),
        number(&spill["underway"]),
        bytes(&spill["written_bytes"]),
        number(&spill["refused"])
    )?;
    if let Some(refusal) = spill["refusal"].as_str() {
        writeln!(out, "              {refusal}")?;
    }
    Ok(())
}

fn write_requirements(stat: &Value, out: &mut StandardOutput) -> Result<()> {
    let shown = array(&stat["named_requirements"]);
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    out.heading(&format!(
        "{:<24} {:>8} {:>11} {:>9} {:>6} {:>8} {:>8}  {:<20} selector",
        "requirement", "owed", "bytes", "in flight", "lost", "age", "released", "reader"
    ))?;
    for one in shown {
        let mut selector = printable(&one["selector"]);
        if one["versions"] == "newest" {
            selector.push_str(" (newest)");
        }
        if one["on_full"] == "break" {
            selector.push_str(" (breaks)");
        }
        let reader = match (&one["reader"], &one["group"]["member_count"]) {
            (Value::Null, Value::Null) => "none".to_owned(),
            (Value::Null, members) => format!("{} members", number(members)),
            (reader, _) => format!("{} ({})", printable(&reader["name"]), number(&reader["pid"])),
        };
        writeln!(
            out,
            "{:<24} {:>8} {:>11} {:>9} {:>6} {:>8} {:>8}  {reader:<20} {selector}",
            printable(&one["name"]),
            number(&one["owed"]),
            bytes(&one["owed_bytes"]),
            number(&one["in_flight"]),
            number(&one["lost"]),
            ago(&one["age_s"]),
            ago(&one["last_release_age_s"])
        )?;
    }
    let (shown, all) = (shown.len() as u64, number(&stat["interests"]["named"]));
    if all > shown {
        writeln!(out, "and {} more", all - shown)?;
    }
    Ok(())
}

/// Requirements that block no client any more.
fn write_broken(stat: &Value, out: &mut StandardOutput) -> Result<()> {
    let broken = array(&stat["broken_requirements"]);
    if broken.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    out.heading(&format!(
        "{:<24} {:>8} {:>8}  {:<20} why",
        "broken", "since", "missed", "reader"
    ))?;
    for one in broken {
        let name = match &one["name"] {
            Value::Null => format!("({})", printable(&one["selector"])),
            name => printable(name),
        };
        let reader = match &one["client"] {
            Value::Null => "none".to_owned(),
            reader => format!("{} ({})", printable(&reader["name"]), number(&reader["pid"])),
        };
        writeln!(
            out,
            "{name:<24} {:>8} {:>8}  {reader:<20} {}",
            ago(&one["age_s"]),
            number(&one["lost"]),
            printable(&one["why"])
        )?;
    }
    Ok(())
}

/// Returns a time in a readable unit; `-` for none.
pub(crate) fn ago(seconds: &Value) -> String {
    match seconds.as_f64() {
        None => "-".to_owned(),
        Some(time) if time < 120.0 => format!("{time:.0} s"),
        Some(time) if time < 7200.0 => format!("{:.0} min", time / 60.0),
        Some(time) if time < 172_800.0 => format!("{:.0} h", time / 3600.0),
        Some(time) => format!("{:.0} d", time / 86_400.0),
    }
}

pub(crate) fn printable(text: &Value) -> String {
    visible::printable(text.as_str().unwrap_or_default())
}

fn write_clients(stat: &Value, out: &mut StandardOutput) -> Result<()> {
    writeln!(out)?;
    out.heading(&format!(
        "{:>7}  {:<24} {:>8} {:>10} {:>10} {:>6} {:>11}  note",
        "client", "name", "pid", "offered", "delivered", "held", "leased"
    ))?;
    for client in array(&stat["clients"]) {
        let (name, note) = (printable(&client["name"]), printable(&client["note"]));
        let line = format!(
            "{:>7}  {name:<24} {:>8} {:>10} {:>10} {:>6} {:>11}  {note}",
            number(&client["client"]),
            number(&client["pid"]),
            number(&client["offered"]),
            number(&client["delivered"]),
            number(&client["held"]),
            bytes(&client["leased_bytes"])
        );
        writeln!(out, "{}", line.trim_end())?;
        let way = printable(&client["transport"]);
        if way.starts_with("tcp") {
            writeln!(out, "{:>7}  {way}", "")?;
        }
    }
    let (shown, all) = (array(&stat["clients"]).len() as u64, number(&stat["clients_connected"]));
    if all > shown {
        writeln!(out, "{:>7}  and {} more", "", all - shown)?;
    }
    Ok(())
}

pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a count; a server of another version may lack it.
pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

pub(crate) fn bytes(value: &Value) -> String {
    size::bytes(number(value))
}
