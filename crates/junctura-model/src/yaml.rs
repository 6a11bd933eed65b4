//! Parses YAML into a small tree that remembers lines and stores every scalar as text.
//!
//! The caller determines types, not YAML's implicit rules, so `0001`, `no` and `1e3` are taken literally. Anchors,
//! aliases and tags are rejected because they have no use here and could be misused. Duplicate names in a map are
//! rejected.

use std::collections::BTreeSet;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// Maximum nesting depth of maps and lists.
const DEPTH_MAX: usize = 8;
/// Maximum number of values: each takes many times the memory of its text.
const VALUES_MAX: usize = 1 << 21;

/// An error, with its line (counted from 1).
#[derive(Debug)]
pub struct YamlFault {
    /// The line.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl YamlFault {
    /// In this line.
    pub fn new(line: usize, why: impl Into<String>) -> YamlFault {
        YamlFault { line, why: why.into() }
    }
}

/// The result of a parse.
pub type Read<T> = std::result::Result<T, YamlFault>;

/// A value and the line where it begins.
#[derive(Debug)]
pub struct YamlNode {
    /// The line where it begins.
    pub line: usize,
    /// The value.
    pub data: YamlData,
}

/// The kinds of value.
#[derive(Debug)]
pub enum YamlData {
    /// A text; `None` where nothing was written.
    Text(Option<String>),
    /// Values in their order.
    List(Vec<YamlNode>),
    /// Names and their values.
    Map(Vec<YamlEntry>),
}

/// A name of a map and its value.
#[derive(Debug)]
pub struct YamlEntry {
    /// The name.
    pub name: String,
    /// The line of the name.
    pub line: usize,
    /// The value.
    pub value: YamlNode,
}

impl YamlNode {
    /// Its text; `what` is how errors call it.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(&self, what: &str) -> Read<&str> {
        match &self.data {
            YamlData::Text(Some(text)) => Ok(text),
            _ => Err(YamlFault::new(self.line, format!("{what} must be one value"))),
        }
    }

    /// Its items, where nothing at all counts as none.
    ///
    /// # Errors
    /// It is something else.
    pub fn list(&self, what: &str) -> Read<&[YamlNode]> {
        match &self.data {
            YamlData::List(items) => Ok(items),
            YamlData::Text(None) => Ok(&[]),
            _ => Err(YamlFault::new(self.line, format!("{what} must be a list"))),
        }
    }

    /// Its entries, where nothing at all counts as none.
    ///
    /// # Errors
    /// It is something else.
    pub fn map(&self, what: &str) -> Read<&[YamlEntry]> {
        match &self.data {
            YamlData::Map(entries) => Ok(entries),
            YamlData::Text(None) => Ok(&[]),
            _ => Err(YamlFault::new(
                self.line,
                format!("{what} must be a map of names to values"),
            )),
        }
    }
}

/// The entries of a map with a fixed set of names.
#[derive(Debug)]
pub struct YamlFields<'a> {
    entries: &'a [YamlEntry],
    line: usize,
    what: &'a str,
}

impl<'a> YamlFields<'a> {
    /// Returns the entries of a map; `what` names it in errors, and `known` are its allowed names.
    ///
    /// # Errors
    /// Another name; no map.
    pub fn new(node: &'a YamlNode, what: &'a str, known: &[&str]) -> Read<Self> {
        let entries = node.map(what)?;
        match entries.iter().find(|entry| !known.contains(&entry.name.as_str())) {
            None => Ok(YamlFields {
                entries,
                line: node.line,
                what,
            }),
            Some(YamlEntry { name, line, .. }) => Err(YamlFault::new(
                *line,
                format!("{what} has no field {name} (it may have {})", known.join(", ")),
            )),
        }
    }

    /// The value of a name, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a YamlNode> {
        self.entries
            .iter()
            .find(|entry| entry.name == name)
            .map(|entry| &entry.value)
    }

    /// The value of a name that has to be there.
    ///
    /// # Errors
    /// It is not.
    pub fn need(&self, name: &str) -> Read<&'a YamlNode> {
        self.get(name)
            .ok_or_else(|| YamlFault::new(self.line, format!("{} needs the field {name}", self.what)))
    }

    /// A text; empty where there is none.
    ///
    /// # Errors
    /// It is a list or a map.
    pub fn text(&self, name: &str) -> Read<String> {
        self.get(name)
            .map_or(Ok(String::new()), |node| Ok(node.text(name)?.to_owned()))
    }

    /// Converts a text with `read`, if it is there; `expected` describes the expected form in errors.
    ///
    /// # Errors
    /// The value has another form.
    pub fn read<T>(&self, name: &str, expected: &str, read: impl Fn(&str) -> Option<T>) -> Read<Option<T>> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let value = read(node.text(name)?);
        value
            .map(Some)
            .ok_or_else(|| YamlFault::new(node.line, format!("{name} must be {expected}")))
    }
}

/// A map or list that is being read.
struct OpenNode {
    line: usize,
    /// A map's entries or a list's items; items have no name.
    entries: Vec<YamlEntry>,
    is_map: bool,
    /// The names of a map.
    names: BTreeSet<String>,
    /// The name that waits for its value.
    name: Option<(String, usize)>,
}

/// Reads one document.
///
/// # Errors
/// What is not YAML, or not of the kind that is read here.
pub fn parse(text: &str) -> Read<YamlNode> {
    let mut open: Vec<OpenNode> = Vec::new();
    let mut root = None;
    for (count, event) in Parser::new_from_str(text).enumerate() {
        let (event, span) = event.map_err(|error| YamlFault::new(error.marker().line(), error.info()))?;
        let line = span.start.line();
        if count >= VALUES_MAX {
            return Err(YamlFault::new(line, format!("more than {VALUES_MAX} values")));
        }
        let done = match event {
            Event::Scalar(text, style, 0, None) => {
                let absent = text.is_empty() && style == ScalarStyle::Plain;
                YamlNode {
                    line,
                    data: YamlData::Text((!absent).then(|| text.into_owned())),
                }
            }
            Event::SequenceStart(0, None) | Event::MappingStart(0, None) if open.len() == DEPTH_MAX => {
                return Err(YamlFault::new(
                    line,
                    format!("more than {DEPTH_MAX} levels of maps and lists"),
                ));
            }
            Event::SequenceStart(0, None) | Event::MappingStart(0, None) => {
                let is_map = matches!(event, Event::MappingStart(..));
                open.push(OpenNode {
                    line,
                    entries: Vec::new(),
                    is_map,
                    names: BTreeSet::new(),
                    name: None,
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(opened) => close(opened),
                None => continue,
            },
            Event::Alias(_) | Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) => {
                return Err(YamlFault::new(
                    line,
                    "anchors (&), aliases (*) and tags (!) are not allowed",
                ));
            }
            Event::DocumentStart(_) if root.is_some() => {
                return Err(YamlFault::new(line, "only one document is allowed"));
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(opened) => take(opened, done)?,
            None => root = Some(done),
        }
    }
    root.ok_or_else(|| YamlFault::new(1, "the file is empty"))
}

fn close(opened: OpenNode) -> YamlNode {
    let data = if opened.is_map {
        YamlData::Map(opened.entries)
    } else {
        YamlData::List(opened.entries.into_iter().map(|entry| entry.value).collect())
    };
    YamlNode {
        line: opened.line,
        data,
    }
}

/// Inserts a finished node into its map or list.
fn take(opened: &mut OpenNode, node: YamlNode) -> Read<()> {
    let line = node.line;
    if !opened.is_map {
        opened.entries.push(YamlEntry {
            name: String::new(),
            line,
            value: node,
        });
    } else if let Some((name, line)) = opened.name.take() {
        opened.entries.push(YamlEntry {
            name,
            line,
            value: node,
        });
    } else {
        let name = node.text("a name")?;
        if !opened.names.insert(name.to_owned()) {
            return Err(YamlFault::new(line, format!("{name} occurs twice in one map")));
        }
        opened.name = Some((name.to_owned(), line));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_may_have_very_many_names_once_each() {
        let lines: Vec<String> = (0..200_000).map(|number| format!("n{number}: 1\n")).collect();
        let mut text = lines.concat();
        let read = parse(&text).unwrap();
        assert_eq!(read.map("it").unwrap().len(), 200_000);
        text.push_str("n7: 2\n");
        let fault = parse(&text).unwrap_err();
        assert_eq!((fault.line, &*fault.why), (200_001, "n7 occurs twice in one map"));
    }

    #[test]
    fn a_document_has_a_largest_number_of_values() {
        let list = |values: usize| parse(&format!("[{}]", "1,".repeat(values)));
        // The beginning of the text, of the document and of the list count, too.
        assert_eq!(
            list(VALUES_MAX - 10).unwrap().list("it").unwrap().len(),
            VALUES_MAX - 10
        );
        let fault = list(VALUES_MAX).unwrap_err();
        assert_eq!(fault.why, format!("more than {VALUES_MAX} values"));
    }
}
