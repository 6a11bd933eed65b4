//! The graph of what waits for what, for Graphviz.

use std::collections::BTreeSet;

use junctura::Result;
use junctura::reasons::{ClientReference, ReasonReference, WaitingRequest};
use junctura_terminal::output::StandardOutput;

use super::chains::{WaitGraph, clients_of};
use super::words;

/// Lines of the graph, each once.
#[derive(Default)]
struct GraphLines {
    seen: BTreeSet<String>,
    lines: Vec<String>,
}

impl GraphLines {
    fn add(&mut self, line: String) {
        if self.seen.insert(line.clone()) {
            self.lines.push(line);
        }
    }

    fn client(&mut self, client: &ClientReference) -> String {
        let name = format!("client{}", client.client);
        self.add(format!("{name} [label={}];", quoted(&words::client(client))));
        name
    }

    /// Adds what a request waits for, and the clients behind it.
    fn reference(&mut self, reference: &ReasonReference) -> Option<String> {
        let (name, label) = match (&reference.requirement, &reference.bundle) {
            (Some(one), _) => (format!("requirement{}", one.number), words::requirement_name(one)),
            (None, Some(one)) => (format!("bundle{}", one.number), words::bundle_name(one)),
            (None, None) => return reference.client.as_ref().map(|client| self.client(client)),
        };
        self.add(format!("{name} [shape=box, label={}];", quoted(&label)));
        for client in clients_of(reference) {
            let client = self.client(client);
            self.add(format!("{name} -> {client};"));
        }
        Some(name)
    }

    fn request(&mut self, request: &WaitingRequest) {
        let client = self.client(&request.client);
        let label = quoted(&format!("{}: {}", request.kind, words::cause(request)));
        let on: Vec<String> = request.on.iter().filter_map(|one| self.reference(one)).collect();
        if on.is_empty() {
            let name = format!("request{}_{}", request.client.client, request.request);
            self.add(format!("{name} [shape=plaintext, label={}];", quoted(&request.what)));
            self.add(format!("{client} -> {name} [label={label}];"));
        }
        for one in on {
            self.add(format!("{client} -> {one} [label={label}];"));
        }
    }
}

/// Writes the requests that are shown, and those of the clients behind them.
pub(super) fn write(all: &WaitGraph, shown: &[&WaitingRequest], out: &mut StandardOutput) -> Result<()> {
    let mut graph = GraphLines::default();
    let mut clients: Vec<u32> = shown.iter().map(|request| request.client.client).collect();
    let mut seen = BTreeSet::new();
    while let Some(client) = clients.pop() {
        if !seen.insert(client) {
            continue;
        }
        for request in all.waits_of(client) {
            graph.request(request);
            let behind = request.on.iter().flat_map(clients_of);
            clients.extend(behind.map(|one| one.client));
        }
    }
    writeln!(out, "digraph waits {{")?;
    for line in graph.lines {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "}}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
