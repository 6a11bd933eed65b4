//! Compatibility of schemas: fingerprints show whether two schemas agree about identity, [`Schema::first_difference`]
//! shows the difference.

use std::fmt::Write as _;

use super::{Attribute, LEVELS, Schema};
use crate::text::quote;

impl Schema {
    /// All that the fingerprint covers, as a text.
    pub(super) fn essence(&self) -> String {
        let mut text = format!(
            "junctura schema/1\nname {}\ngeneration {}\nopen {}\n",
            self.name, self.generation, self.open
        );
        for attribute in &self.attributes[..self.key_len()] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", KeyEssence(attribute));
        }
        text
    }

    /// Returns the first difference between two schemas that the fingerprint covers, in words, with this schema's side
    /// first; `None` if the fingerprints are equal.
    #[must_use]
    pub fn first_difference(&self, other: &Schema) -> Option<String> {
        self.first_difference_between(other, ["the one", "the other"])
    }

    /// As [`Schema::first_difference`]; `places` names where each of the two schemas is.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// let (free, record) = (Schema::builtin("free").unwrap(), Schema::builtin("record").unwrap());
    /// let difference = free.first_difference_between(&record, ["the pool", "the program"]);
    /// assert_eq!(difference.as_deref(), Some("name: free in the pool, record in the program"));
    /// ```
    #[must_use]
    pub fn first_difference_between(&self, other: &Schema, places: [&str; 2]) -> Option<String> {
        let [here, there] = places;
        let differ = |what: &str, ours: &dyn ToString, theirs: &dyn ToString| {
            let (ours, theirs) = (ours.to_string(), theirs.to_string());
            (ours != theirs).then(|| format!("{what}: {ours} in {here}, {theirs} in {there}"))
        };
        differ("name", &self.name, &other.name)
            .or_else(|| differ("key generation", &self.generation, &other.generation))
            .or_else(|| differ("open", &self.open, &other.open))
            .or_else(|| {
                let (ours, theirs) = (&self.attributes[..self.key_len()], &other.attributes[..other.key_len()]);
                (0..ours.len().max(theirs.len())).find_map(|at| match (ours.get(at), theirs.get(at)) {
                    (Some(a), Some(b)) => differ("key attribute", &KeyEssence(a), &KeyEssence(b)),
                    (Some(a), None) => Some(format!("key attribute {}: in {here}, but not in {there}", a.name)),
                    (None, Some(b)) => Some(format!("key attribute {}: in {there}, but not in {here}", b.name)),
                    (None, None) => None,
                })
            })
    }
}

impl Schema {
    /// Returns all differences between two schemas but those of documentation, in words, with this schema's side first. Schemas with
    /// equal fingerprints may differ in what happens to a repeated key, in retention, durability, and in attributes outside the key.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// let text = "{name: runs, key: {dataset: [run], collocation: [], element: [step]}, \
    ///             attributes: {run: {type: string}, step: {type: integer}}}";
    /// let served = Schema::parse_yaml(text)?;
    /// let own = Schema::parse_yaml(&text.replace("runs,", "runs, same_key: supersede,"))?;
    /// assert_eq!(own.differences(&served), ["same_key: supersede here, reject there"]);
    /// assert!(own.first_difference(&served).is_none());
    /// # Ok::<(), junctura_model::Error>(())
    /// ```
    #[must_use]
    pub fn differences(&self, other: &Schema) -> Vec<String> {
        let (ours, theirs) = (self.properties(), other.properties());
        let value = |properties: &[(String, String)], name: &str| {
            let found = properties.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone())
        };
        let added = theirs.iter().filter(|(name, _)| value(&ours, name).is_none());
        let names = ours.iter().chain(added).map(|(name, _)| name);
        let difference = |name: &String| match (value(&ours, name), value(&theirs, name)) {
            (Some(here), Some(there)) if here == there => None,
            (Some(here), Some(there)) => Some(format!("{name}: {here} here, {there} there")),
            (Some(_), None) => Some(format!("{name}: here, but not there")),
            (None, _) => Some(format!("{name}: there, but not here")),
        };
        names.filter_map(difference).collect()
    }

    /// Returns the lines of its file without documentation, each with its name.
    fn properties(&self) -> Vec<(String, String)> {
        let mut bare = self.clone();
        bare.doc.clear();
        for attribute in &mut bare.attributes {
            attribute.doc.clear();
        }
        let mut properties: Vec<(String, String)> = Vec::new();
        let mut section = String::new();
        for line in bare.to_yaml().lines() {
            match (line.strip_prefix("  "), line.strip_suffix(':')) {
                (None, Some(name)) => name.clone_into(&mut section),
                (Some(inner), _) if inner.starts_with("- ") => match properties.last_mut() {
                    Some((name, rules)) if *name == section => *rules = format!("{rules} {inner}"),
                    _ => properties.push((section.clone(), inner.to_owned())),
                },
                (inner, _) => {
                    let (name, value) = inner.unwrap_or(line).split_once(": ").unwrap_or((line, ""));
                    let name = match inner {
                        Some(_) if section == "attributes" => format!("attribute {name}"),
                        Some(_) => format!("{section} {name}"),
                        None => name.to_owned(),
                    };
                    properties.push((name, value.to_owned()));
                }
            }
        }
        properties
    }
}

/// The properties of a key attribute on which identity depends.
struct KeyEssence<'a>(&'a Attribute);

impl std::fmt::Display for KeyEssence<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Attribute {
            name,
            kind,
            level,
            optional,
            default,
            ..
        } = self.0;
        let level = level.map_or("", |level| LEVELS[level]);
        write!(f, "{name}{} ({kind}, in {level}", if *optional { "?" } else { "" })?;
        if let Some(default) = default {
            let mut text = String::new();
            quote(default, &mut text);
            write!(f, ", default {text}")?;
        }
        f.write_str(")")
    }
}
