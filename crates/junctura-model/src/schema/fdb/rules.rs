//! From the text to a tree: the types that hold everywhere, and the rules.

use super::reader::{Place, Reader};
use super::{Read, Trouble};
use crate::limits::{ALLOWED_VALUES_MAX, ATTRIBUTES_MAX, SCHEMA_RULES_MAX};
use crate::schema::LEVELS;

/// The whole file.
pub(super) struct File<'a> {
    pub(super) types: Vec<Typed<'a>>,
    pub(super) rules: Vec<Level<'a>>,
}

/// A name and the type that it has.
#[derive(Clone, Copy)]
pub(super) struct Typed<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    /// Where the type stands.
    pub(super) place: Place,
}

/// One level of a rule, and the levels inside it.
pub(super) struct Level<'a> {
    pub(super) place: Place,
    pub(super) conditions: Vec<Condition<'a>>,
    pub(super) inner: Vec<Level<'a>>,
}

/// What a rule says of one attribute.
pub(super) struct Condition<'a> {
    pub(super) name: &'a str,
    pub(super) place: Place,
    pub(super) kind: Option<Typed<'a>>,
    pub(super) takes: Takes<'a>,
}

/// Which values a rule takes.
pub(super) enum Takes<'a> {
    Any,
    OneOf(Vec<(&'a str, Place)>),
    NoneOf(Vec<&'a str>),
    /// Any or none at all; what FDB reads for none.
    Optional(&'a str),
    /// Any or none, and none of them is part of the key.
    Hidden,
}

/// Reads a file.
pub(super) fn read(text: &str) -> Read<File<'_>> {
    let mut reader = Reader::new(text);
    let mut file = File {
        types: Vec::new(),
        rules: Vec::new(),
    };
    while reader.peek().is_some_and(|c| c != '[') {
        let place = reader.place();
        let name = reader.name()?;
        reader.need(':')?;
        let kind = typed(&mut reader, name)?;
        reader.need(';')?;
        if file.types.iter().any(|other| other.name == name) {
            return Err(Trouble::new(place, format!("{name} has a type already")));
        }
        if file.types.len() == TYPES_MAX {
            return Err(Trouble::new(place, format!("more than {TYPES_MAX} types")));
        }
        file.types.push(kind);
    }
    while reader.peek() == Some('[') {
        let rule = level(&mut reader, 0)?;
        if file.rules.len() == SCHEMA_RULES_MAX {
            return Err(Trouble::new(rule.place, format!("more than {SCHEMA_RULES_MAX} rules")));
        }
        file.rules.push(rule);
    }
    if reader.peek().is_some() || file.rules.is_empty() {
        return Err(reader.expected("a rule, which begins with '['"));
    }
    Ok(file)
}

/// Types that a file may give by name.
const TYPES_MAX: usize = 1024;

fn level<'a>(reader: &mut Reader<'a>, depth: usize) -> Read<Level<'a>> {
    let place = reader.place();
    reader.need('[')?;
    let (mut conditions, mut inner) = (Vec::new(), Vec::new());
    while !reader.take(']') {
        if reader.peek() == Some('[') {
            if depth + 1 == LEVELS.len() {
                return Err(Trouble::new(
                    reader.place(),
                    "a rule has three levels, and this is a fourth",
                ));
            }
            inner.push(level(reader, depth + 1)?);
        } else {
            conditions.push(condition(reader)?);
            while reader.take(',') {
                conditions.push(condition(reader)?);
            }
            if !matches!(reader.peek(), Some('[' | ']')) {
                return Err(reader.expected("',', '[' or ']'"));
            }
        }
        if conditions.len() > ATTRIBUTES_MAX || inner.len() > SCHEMA_RULES_MAX {
            let why = format!("more than {ATTRIBUTES_MAX} attributes or {SCHEMA_RULES_MAX} rules in one level");
            return Err(Trouble::new(place, why));
        }
    }
    if inner.is_empty() && depth + 1 < LEVELS.len() {
        let why = format!(
            "a rule has three levels, and there is no {} inside this",
            LEVELS[depth + 1]
        );
        return Err(Trouble::new(place, why));
    }
    Ok(Level {
        place,
        conditions,
        inner,
    })
}

fn typed<'a>(reader: &mut Reader<'a>, name: &'a str) -> Read<Typed<'a>> {
    let place = reader.place();
    let kind = reader.name()?;
    Ok(Typed { name, kind, place })
}

fn condition<'a>(reader: &mut Reader<'a>) -> Read<Condition<'a>> {
    let place = reader.place();
    let name = reader.name()?;
    let kind = reader.take(':').then(|| typed(reader, name)).transpose()?;
    let takes = if reader.take('?') {
        Takes::Optional(reader.value()?)
    } else if reader.take('-') {
        // A value may follow; FDB keeps it nowhere.
        reader.value()?;
        Takes::Hidden
    } else if reader.take('=') {
        values(reader)?
    } else {
        Takes::Any
    };
    Ok(Condition {
        name,
        place,
        kind,
        takes,
    })
}

fn values<'a>(reader: &mut Reader<'a>) -> Read<Takes<'a>> {
    let mut values: Vec<(&str, Place)> = Vec::new();
    loop {
        let place = reader.place();
        let value = reader.value()?;
        if value.is_empty() {
            return Err(reader.expected("a value"));
        }
        if values.len() == ALLOWED_VALUES_MAX {
            return Err(Trouble::new(place, format!("more than {ALLOWED_VALUES_MAX} values")));
        }
        values.push((value, place));
        if !reader.take('/') {
            break;
        }
    }
    let Some(first) = values[0].0.strip_prefix('!') else {
        return Ok(Takes::OneOf(values));
    };
    let others = values[1..].iter().map(|(value, _)| *value);
    Ok(Takes::NoneOf(std::iter::once(first).chain(others).collect()))
}
