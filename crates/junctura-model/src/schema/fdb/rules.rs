//! From the text to a tree: the types that hold everywhere, and the rules.

use super::reader::{FdbReader, FilePosition};
use super::{FdbFault, Read};
use crate::limits::{ALLOWED_VALUES_MAX, ATTRIBUTES_MAX, SCHEMA_RULES_MAX};
use crate::schema::LEVELS;

/// The whole file.
pub(super) struct FdbFile<'a> {
    pub(super) types: Vec<TypedName<'a>>,
    pub(super) rules: Vec<RuleLevel<'a>>,
}

/// A name and the type that it has.
#[derive(Clone, Copy)]
pub(super) struct TypedName<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    /// The position of the type.
    pub(super) place: FilePosition,
}

/// One level of a rule, and the levels inside it.
pub(super) struct RuleLevel<'a> {
    pub(super) place: FilePosition,
    pub(super) conditions: Vec<RuleCondition<'a>>,
    pub(super) inner: Vec<RuleLevel<'a>>,
}

/// The condition of a rule for one attribute.
pub(super) struct RuleCondition<'a> {
    pub(super) name: &'a str,
    pub(super) place: FilePosition,
    pub(super) kind: Option<TypedName<'a>>,
    pub(super) takes: TakenValues<'a>,
}

/// Which values a rule takes.
pub(super) enum TakenValues<'a> {
    Any,
    OneOf(Vec<(&'a str, FilePosition)>),
    NoneOf(Vec<&'a str>),
    /// Any or none at all; what FDB reads for none.
    Optional(&'a str),
    /// Any value or none, not part of the key.
    Hidden,
}

/// Reads a file.
pub(super) fn read(text: &str) -> Read<FdbFile<'_>> {
    let mut reader = FdbReader::new(text);
    let mut file = FdbFile {
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
            return Err(FdbFault::new(place, format!("{name} has a type already")));
        }
        if file.types.len() == TYPES_MAX {
            return Err(FdbFault::new(place, format!("more than {TYPES_MAX} types")));
        }
        file.types.push(kind);
    }
    while reader.peek() == Some('[') {
        let rule = level(&mut reader, 0)?;
        if file.rules.len() == SCHEMA_RULES_MAX {
            return Err(FdbFault::new(rule.place, format!("more than {SCHEMA_RULES_MAX} rules")));
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

fn level<'a>(reader: &mut FdbReader<'a>, depth: usize) -> Read<RuleLevel<'a>> {
    let place = reader.place();
    reader.need('[')?;
    let (mut conditions, mut inner) = (Vec::new(), Vec::new());
    while !reader.take(']') {
        if reader.peek() == Some('[') {
            if depth + 1 == LEVELS.len() {
                return Err(FdbFault::new(
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
            return Err(FdbFault::new(place, why));
        }
    }
    if inner.is_empty() && depth + 1 < LEVELS.len() {
        let why = format!(
            "a rule has three levels, and there is no {} inside this",
            LEVELS[depth + 1]
        );
        return Err(FdbFault::new(place, why));
    }
    Ok(RuleLevel {
        place,
        conditions,
        inner,
    })
}

fn typed<'a>(reader: &mut FdbReader<'a>, name: &'a str) -> Read<TypedName<'a>> {
    let place = reader.place();
    let kind = reader.name()?;
    Ok(TypedName { name, kind, place })
}

fn condition<'a>(reader: &mut FdbReader<'a>) -> Read<RuleCondition<'a>> {
    let place = reader.place();
    let name = reader.name()?;
    let kind = reader.take(':').then(|| typed(reader, name)).transpose()?;
    let takes = if reader.take('?') {
        TakenValues::Optional(reader.value()?)
    } else if reader.take('-') {
        // A value may follow; FDB keeps it nowhere.
        reader.value()?;
        TakenValues::Hidden
    } else if reader.take('=') {
        values(reader)?
    } else {
        TakenValues::Any
    };
    Ok(RuleCondition {
        name,
        place,
        kind,
        takes,
    })
}

fn values<'a>(reader: &mut FdbReader<'a>) -> Read<TakenValues<'a>> {
    let mut values: Vec<(&str, FilePosition)> = Vec::new();
    loop {
        let place = reader.place();
        let value = reader.value()?;
        if value.is_empty() {
            return Err(reader.expected("a value"));
        }
        if values.len() == ALLOWED_VALUES_MAX {
            return Err(FdbFault::new(place, format!("more than {ALLOWED_VALUES_MAX} values")));
        }
        values.push((value, place));
        if !reader.take('/') {
            break;
        }
    }
    let Some(first) = values[0].0.strip_prefix('!') else {
        return Ok(TakenValues::OneOf(values));
    };
    let others = values[1..].iter().map(|(value, _)| *value);
    Ok(TakenValues::NoneOf(std::iter::once(first).chain(others).collect()))
}
