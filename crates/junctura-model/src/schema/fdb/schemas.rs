//! From the tree to schemas: one for each way from an outermost level to an innermost one.

use super::rules::{FdbFile, RuleCondition, RuleLevel, TakenValues, TypedName};
use super::{FdbFault, Read, fdb_value};
use crate::limits::{ATTRIBUTES_MAX, SCHEMA_GROWN_BYTES_MAX, SCHEMA_ITEM_BYTES, SCHEMA_RULES_MAX, VALUE_BYTES_MAX};
use crate::schema::{Attribute, Durability, Retention, SameKey, Schema, SchemaParts, is_name};
use crate::value::{Given, Kind, Type};

/// The type names of FDB, and the corresponding types. The values that FDB derives from dates (`ClimateDaily` and the
/// types after it) are not dates.
const TYPES: [(&str, Type); 20] = [
    ("Date", Type::Date),
    ("Time", Type::Time),
    ("Step", Type::Step),
    ("Integer", Type::Integer),
    ("Double", Type::Decimal),
    ("Default", Type::String),
    ("Expver", Type::String),
    ("Param", Type::String),
    ("ParamID", Type::String),
    ("Grid", Type::String),
    ("First3", Type::String),
    ("Lowercase", Type::String),
    ("ClimateDaily", Type::String),
    ("ClimateMonthly", Type::String),
    ("YearMonth", Type::String),
    ("Month", Type::String),
    ("MonthOfDate", Type::String),
    ("Year", Type::String),
    (IGNORED, Type::String),
    ("Abbreviation", Type::String),
];
/// The type of what is no part of the key.
const IGNORED: &str = "Ignore";
/// Under these types FDB's keys have an attribute under another name.
const RENAMED: [(&str, &str); 3] = [("Month", "month"), ("MonthOfDate", "month"), ("Year", "year")];
/// Characters of a rule's conditions in the line that documents its schema.
const SHOWN_MAX: usize = 120;

/// The schemas of a file.
pub(super) fn schemas(file: &FdbFile<'_>, name: &str) -> Read<Vec<Schema>> {
    let levels = |rule| paths(rule).collect::<Vec<_>>();
    let paths: Vec<[&RuleLevel<'_>; 3]> = file.rules.iter().flat_map(levels).collect();
    let first = file.rules[0].place;
    let name_longest = format!("{name}-{}", paths.len());
    if !is_name(&name_longest) {
        return Err(FdbFault::new(first, format!("{name:?} cannot be a schema name")));
    }
    if paths.len() > SCHEMA_RULES_MAX || paths.iter().map(grown_bytes).sum::<usize>() > SCHEMA_GROWN_BYTES_MAX {
        let why = format!("more than {SCHEMA_RULES_MAX} rules, or {SCHEMA_GROWN_BYTES_MAX} bytes when expanded");
        return Err(FdbFault::new(first, why));
    }
    let is_single = paths.len() == 1;
    let named = |at: usize| {
        if is_single {
            name.to_owned()
        } else {
            format!("{name}-{}", at + 1)
        }
    };
    let made = paths
        .iter()
        .enumerate()
        .map(|(at, path)| schema(path, named(at), &file.types));
    made.collect()
}

/// The ways through a rule. Levels that are not innermost have others inside: the reader has seen to that.
fn paths<'a, 'b>(rule: &'a RuleLevel<'b>) -> impl Iterator<Item = [&'a RuleLevel<'b>; 3]> {
    let middle = move |middle: &'a RuleLevel<'b>| middle.inner.iter().map(move |inner| [rule, middle, inner]);
    rule.inner.iter().flat_map(middle)
}

/// Returns the approximate size of a schema: an outer level is expanded in each of its rules. A short value takes more
/// than its text.
fn grown_bytes(path: &[&RuleLevel<'_>; 3]) -> usize {
    let of_text = |text: &str| text.len() + SCHEMA_ITEM_BYTES;
    let of_values = |condition: &RuleCondition<'_>| match &condition.takes {
        TakenValues::OneOf(values) => values.iter().map(|(value, _)| of_text(value)).sum(),
        TakenValues::NoneOf(values) => values.iter().map(|value| of_text(value)).sum(),
        TakenValues::Optional(default) => of_text(default),
        TakenValues::Any | TakenValues::Hidden => 0,
    };
    let conditions = path.iter().flat_map(|level| &level.conditions);
    conditions
        .map(|condition| of_text(condition.name) + of_values(condition))
        .sum()
}

fn schema(path: &[&RuleLevel<'_>; 3], name: String, types: &[TypedName<'_>]) -> Read<Schema> {
    let place = path[2].place;
    let (mut key, mut others, mut level_ends) = (Vec::new(), Vec::new(), [0; 3]);
    for (level, level_end) in level_ends.iter_mut().enumerate() {
        for condition in &path[level].conditions {
            let made = attribute(condition, level, types)?;
            let mut known = key.iter().chain(&others);
            if known.any(|other: &Attribute| other.name == made.name) {
                return Err(FdbFault::new(
                    condition.place,
                    format!("{} occurs twice in one rule", made.name),
                ));
            }
            if made.level.is_some() {
                key.push(made);
            } else {
                others.push(made);
            }
        }
        *level_end = key.len();
    }
    if key.is_empty() {
        return Err(FdbFault::new(place, "no attribute of this rule is part of the key"));
    }
    key.append(&mut others);
    if key.len() > ATTRIBUTES_MAX {
        return Err(FdbFault::new(
            place,
            format!("more than {ATTRIBUTES_MAX} attributes in one rule"),
        ));
    }
    let parts = SchemaParts {
        name,
        generation: 1,
        doc: doc(path),
        open: false,
        same_key: SameKey::Supersede,
        durability: Durability::Memory,
        retention: Retention::UntilWithdrawn,
        attributes: key,
        level_ends,
    };
    Schema::of(parts).map_err(|twice| FdbFault::new(place, format!("{twice} names two attributes")))
}

fn attribute(condition: &RuleCondition<'_>, level: usize, types: &[TypedName<'_>]) -> Read<Attribute> {
    let given = condition
        .kind
        .or_else(|| types.iter().find(|typed| typed.name == condition.name).copied());
    let kind = given.map_or(Ok(Type::String), type_of)?;
    let fdb_kind = given.map_or("Default", |typed| typed.kind);
    let renamed = RENAMED.iter().find(|(kind, _)| *kind == fdb_kind);
    let name = renamed.map_or(condition.name, |(_, name)| name);
    if !is_name(name) {
        return Err(FdbFault::new(
            condition.place,
            format!("{name:?} is not a valid attribute name"),
        ));
    }
    let is_hidden = matches!(condition.takes, TakenValues::Hidden) || fdb_kind == IGNORED;
    let values = match &condition.takes {
        TakenValues::OneOf(values) if !is_hidden => {
            let canonical = values.iter().map(|&(value, place)| {
                canonical(kind, value).map_err(|why| FdbFault::new(place, format!("{name}: {why}")))
            });
            canonical.collect::<Read<Vec<_>>>()?
        }
        _ => Vec::new(),
    };
    let doc = match &condition.takes {
        TakenValues::NoneOf(values) => shortened(&format!("FDB: none of {}", values.join(", "))),
        TakenValues::Optional(default) if !default.is_empty() => {
            shortened(&format!("FDB: {default} where it is not given"))
        }
        _ => String::new(),
    };
    Ok(Attribute {
        name: name.to_owned(),
        kind: Kind::one(kind),
        unit: String::new(),
        values,
        range: None,
        aliases: Vec::new(),
        default: None,
        doc,
        level: (!is_hidden).then_some(level),
        optional: is_hidden || matches!(condition.takes, TakenValues::Optional(_)),
        bounds: None,
    })
}

fn type_of(given: TypedName<'_>) -> Read<Type> {
    let known = TYPES.iter().find(|(name, _)| *name == given.kind);
    known.map(|(_, kind)| *kind).ok_or_else(|| {
        let names = TYPES.map(|(name, _)| name).join(", ");
        let why = format!("{}: {:?} is not a known type ({names})", given.name, given.kind);
        FdbFault::new(given.place, why)
    })
}

fn canonical(kind: Type, value: &str) -> std::result::Result<String, String> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("more than {VALUE_BYTES_MAX} bytes"));
    }
    let mut out = String::new();
    kind.canonical(Given::Text(&fdb_value(kind, value)), &mut out)?;
    Ok(out)
}

/// Returns the position of the rule, and the properties that distinguish it from others.
fn doc(path: &[&RuleLevel<'_>; 3]) -> String {
    let conditions = path.iter().flat_map(|level| &level.conditions);
    let told = conditions.filter_map(|condition| match &condition.takes {
        TakenValues::OneOf(values) => {
            let values: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
            Some(format!("{}={}", condition.name, values.join("/")))
        }
        TakenValues::NoneOf(values) => Some(format!("{} not {}", condition.name, values.join("/"))),
        TakenValues::Any | TakenValues::Optional(_) | TakenValues::Hidden => None,
    });
    let told: Vec<String> = told.collect();
    let place = format!("The rule in line {} of a schema of FDB's", path[2].place.line);
    if told.is_empty() {
        return place;
    }
    format!("{place}: {}", shortened(&told.join(", ")))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
