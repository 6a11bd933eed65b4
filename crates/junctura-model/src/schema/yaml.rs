//! YAML as a small tree that remembers lines and leaves every scalar a text.
//!
//! Types come from the schema, not from YAML's guesses, so `0001`, `no` and `1e3` are what they look like. Anchors, aliases
//! and tags have no use in a schema and are refused, and with them what they could be misused for. A name that stands
//! twice in one map is refused.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// How deep maps and lists may lie within each other.
const DEPTH_MAX: usize = 8;

/// What is wrong, and in which line (counted from 1).
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) line: usize,
    pub(super) why: String,
}

impl Trouble {
    pub(super) fn new(line: usize, why: impl Into<String>) -> Trouble {
        Trouble { line, why: why.into() }
    }
}

/// A value and the line where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) data: Data,
}

#[derive(Debug)]
pub(super) enum Data {
    /// A text; `None` where nothing was written.
    Text(Option<String>),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) value: Node,
}

impl Node {
    /// Its text.
    pub(super) fn text(&self, what: &str) -> Result<&str, Trouble> {
        match &self.data {
            Data::Text(Some(text)) => Ok(text),
            _ => Err(Trouble::new(self.line, format!("{what} must be one value"))),
        }
    }

    /// Its items, where nothing at all counts as none.
    pub(super) fn list(&self, what: &str) -> Result<&[Node], Trouble> {
        match &self.data {
            Data::List(items) => Ok(items),
            Data::Text(None) => Ok(&[]),
            _ => Err(Trouble::new(self.line, format!("{what} must be a list"))),
        }
    }

    /// Its entries, where nothing at all counts as none.
    pub(super) fn map(&self, what: &str) -> Result<&[Entry], Trouble> {
        match &self.data {
            Data::Map(entries) => Ok(entries),
            Data::Text(None) => Ok(&[]),
            _ => Err(Trouble::new(
                self.line,
                format!("{what} must be a map of names to values"),
            )),
        }
    }
}

/// A map or list that is being read.
struct Opened {
    line: usize,
    /// A map's entries or a list's items; items have no name.
    entries: Vec<Entry>,
    is_map: bool,
    /// The name that waits for its value.
    name: Option<(String, usize)>,
}

/// Reads one document.
pub(super) fn parse(text: &str) -> Result<Node, Trouble> {
    let mut open: Vec<Opened> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Trouble::new(error.marker().line(), error.info()))?;
        let line = span.start.line();
        let done = match event {
            Event::Scalar(text, style, 0, None) => {
                let absent = text.is_empty() && style == ScalarStyle::Plain;
                Node {
                    line,
                    data: Data::Text((!absent).then(|| text.into_owned())),
                }
            }
            Event::SequenceStart(0, None) | Event::MappingStart(0, None) if open.len() == DEPTH_MAX => {
                return Err(Trouble::new(
                    line,
                    format!("more than {DEPTH_MAX} levels of maps and lists"),
                ));
            }
            Event::SequenceStart(0, None) | Event::MappingStart(0, None) => {
                let is_map = matches!(event, Event::MappingStart(..));
                open.push(Opened {
                    line,
                    entries: Vec::new(),
                    is_map,
                    name: None,
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(opened) => close(opened),
                None => continue,
            },
            Event::Alias(_) | Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) => {
                return Err(Trouble::new(
                    line,
                    "anchors (&), aliases (*) and tags (!) are not allowed",
                ));
            }
            Event::DocumentStart(_) if root.is_some() => {
                return Err(Trouble::new(line, "only one document is allowed"));
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(opened) => take(opened, done)?,
            None => root = Some(done),
        }
    }
    root.ok_or_else(|| Trouble::new(1, "the file is empty"))
}

fn close(opened: Opened) -> Node {
    let data = if opened.is_map {
        Data::Map(opened.entries)
    } else {
        Data::List(opened.entries.into_iter().map(|entry| entry.value).collect())
    };
    Node {
        line: opened.line,
        data,
    }
}

/// Takes a finished node into the map or list that it stands in.
fn take(opened: &mut Opened, node: Node) -> Result<(), Trouble> {
    let line = node.line;
    if !opened.is_map {
        opened.entries.push(Entry {
            name: String::new(),
            line,
            value: node,
        });
    } else if let Some((name, line)) = opened.name.take() {
        opened.entries.push(Entry {
            name,
            line,
            value: node,
        });
    } else {
        let name = node.text("a name")?;
        if opened.entries.iter().any(|entry| entry.name == name) {
            return Err(Trouble::new(line, format!("{name} stands twice in one map")));
        }
        opened.name = Some((name.to_owned(), line));
    }
    Ok(())
}
