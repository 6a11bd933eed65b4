//! Waits as text and as JSON.

use junctura::Result;
use junctura::reasons::{ClientReference, WaitingRequest};
use junctura_terminal::output::StandardOutput;
use serde_json::{Value, json};

use super::chains::{DEPTH_MAX, WaitGraph, clients_of};
use super::words;

/// Returns the requests, and the clients that wait for each other.
pub(super) fn document(all: &WaitGraph, shown: &[&WaitingRequest]) -> Value {
    json!({"waits": shown, "cycles": all.cycles()})
}

pub(super) fn write(all: &WaitGraph, shown: &[&WaitingRequest], out: &mut StandardOutput) -> Result<()> {
    for request in shown {
        write_request(all, request, &mut vec![request.client.client], out)?;
    }
    for cycle in all.cycles() {
        writeln!(out, "{}", cycle_text(&cycle))?;
    }
    Ok(())
}

/// Returns whether a request waits for memory.
pub(super) fn is_full(shown: &[&WaitingRequest]) -> bool {
    shown.iter().any(|request| request.because == "memory")
}

/// Returns whether a request waits for memory that no requirement, bundle or client is named to keep.
pub(super) fn lacks_memory(shown: &[&WaitingRequest]) -> bool {
    let mut waits = shown.iter();
    waits.any(|request| matches!(request.because.as_str(), "memory" | "behind") && request.on.is_empty())
}

fn cycle_text(cycle: &[ClientReference]) -> String {
    let names: Vec<String> = cycle.iter().map(words::client).collect();
    match names.as_slice() {
        [one] => format!("cycle: {one} waits for itself"),
        [one, other] => format!("cycle: {one} and {other} wait for each other"),
        _ => format!("cycle: {} wait for each other, each for the next", names.join(", ")),
    }
}

fn head(request: &WaitingRequest) -> String {
    let client = words::client(&request.client);
    let what = match request.what.as_str() {
        "" => request.kind.clone(),
        what => format!("{} {what}", request.kind),
    };
    let waits = request
        .waits_ms
        .map_or(String::new(), |waits| format!(" {}", words::time(waits)));
    let ends = request
        .ends_in_ms
        .map_or(String::new(), |ends| format!(", at most {} more", words::time(ends)));
    let behind = match request.behind_it {
        0 => String::new(),
        behind => format!("; {} behind it", words::count(behind, "offer")),
    };
    format!("{client}: {what}, waits{waits}{ends}{behind}")
}

/// Writes a request, what it waits for, and what the clients behind that wait for.
fn write_request(
    all: &WaitGraph,
    request: &WaitingRequest,
    path: &mut Vec<u32>,
    out: &mut StandardOutput,
) -> Result<()> {
    let indent = "  ".repeat(2 * path.len() - 2);
    writeln!(out, "{indent}{}", head(request))?;
    writeln!(out, "{indent}  {}", words::cause(request))?;
    for reference in &request.on {
        writeln!(out, "{indent}  - {}", words::reference(reference))?;
        for client in clients_of(reference) {
            write_next(all, client, path, out)?;
        }
    }
    if request.on_more > 0 {
        writeln!(out, "{indent}  - and {} more", request.on_more)?;
    }
    Ok(())
}

/// Writes what a client waits for that another one waits for, unless the chain has been there.
fn write_next(all: &WaitGraph, client: &ClientReference, path: &mut Vec<u32>, out: &mut StandardOutput) -> Result<()> {
    if path.len() >= DEPTH_MAX || path.contains(&client.client) {
        return Ok(());
    }
    path.push(client.client);
    for request in all.waits_of(client.client) {
        write_request(all, request, path, out)?;
    }
    path.pop();
    Ok(())
}
