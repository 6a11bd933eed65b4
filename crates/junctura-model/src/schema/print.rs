//! From a schema back to a file that reads as an equal schema.

use std::fmt::Write as _;

use super::{Attribute, Durability, LEVELS, SameKey, Schema, default_retention};

impl Schema {
    /// Returns the schema as a file; [`Schema::parse_yaml`] parses it to an equal schema.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.print(&mut out);
        out
    }

    fn print(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "name: {}\ngeneration: {}", scalar(&self.name), self.generation)?;
        if !self.doc.is_empty() {
            writeln!(out, "doc: {}", scalar(&self.doc))?;
        }
        writeln!(out, "open: {}", self.open)?;
        let same_key = match self.same_key {
            SameKey::Reject => "reject",
            SameKey::Supersede => "supersede",
        };
        let durability = match self.durability {
            Durability::Memory => "memory",
            Durability::Replicated => "replicated",
            Durability::Durable => "durable",
        };
        writeln!(out, "same_key: {same_key}\ndurability: {durability}")?;
        writeln!(out, "retention: {}", default_retention::in_a_file(&self.retention))?;
        if !self.retention_rules.is_empty() {
            writeln!(out, "retention_by_dataset:")?;
        }
        for rule in &self.retention_rules {
            let (which, stays) = (rule.selector.to_string(), default_retention::in_a_file(&rule.retention));
            writeln!(out, "  - {{where: {}, retention: {stays}}}", quoted(&which))?;
        }
        writeln!(out, "key:")?;
        for (level, name) in LEVELS.into_iter().enumerate() {
            let of_level = self.attributes.iter().filter(|a| a.level == Some(level));
            let names = of_level.map(|a| scalar(&format!("{}{}", a.name, if a.optional { "?" } else { "" })));
            writeln!(out, "  {name}: [{}]", names.collect::<Vec<_>>().join(", "))?;
        }
        writeln!(out, "attributes:")?;
        self.attributes
            .iter()
            .try_for_each(|attribute| print_attribute(attribute, out))
    }
}

fn print_attribute(attribute: &Attribute, out: &mut String) -> std::fmt::Result {
    let Attribute {
        name,
        kind,
        unit,
        values,
        range,
        aliases,
        default,
        doc,
        ..
    } = attribute;
    write!(out, "  {}: {{type: {kind}", scalar(name))?;
    if !unit.is_empty() {
        write!(out, ", unit: {}", scalar(unit))?;
    }
    if !values.is_empty() {
        write!(out, ", values: {}", list(values))?;
    }
    if let Some((smallest, largest)) = range {
        write!(out, ", range: [{}, {}]", scalar(smallest), scalar(largest))?;
    }
    if !aliases.is_empty() {
        write!(out, ", aliases: {}", list(aliases))?;
    }
    if let Some(default) = default {
        write!(out, ", default: {}", scalar(default))?;
    }
    if !doc.is_empty() {
        write!(out, ", doc: {}", scalar(doc))?;
    }
    writeln!(out, "}}")
}

fn list(items: &[String]) -> String {
    format!(
        "[{}]",
        items.iter().map(|item| scalar(item)).collect::<Vec<_>>().join(", ")
    )
}

/// A text as YAML: bare where it is plainly safe, else in double quotes.
fn scalar(text: &str) -> String {
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if begins
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'+' | b'-'))
    {
        return text.to_owned();
    }
    quoted(text)
}

/// A text as YAML, in double quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        // Writing to a String cannot fail.
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => write!(out, "\\u{:04x}", c as u32),
            c if c.is_control() => write!(out, "\\x{:02x}", c as u32),
            c => write!(out, "{c}"),
        };
    }
    out.push('"');
    out
}
