//! Parses schema files. Every error names the line and its content.

use std::str::FromStr;

use super::{Attribute, Durability, LEVELS, Retention, SameKey, Schema, SchemaParts, default_retention, is_name};
use crate::error::{Code, Error, Result};
use crate::limits::{ALIASES_MAX, ALLOWED_VALUES_MAX, ATTRIBUTES_MAX, SCHEMA_BYTES_MAX, VALUE_BYTES_MAX};
use crate::value::{Given, Kind, Type};
use crate::yaml::{self, Read, YamlEntry, YamlFault, YamlFields, YamlNode};

impl Schema {
    /// Parses a schema file, as `docs/formats/key.md` describes it.
    ///
    /// # Errors
    /// `TooLarge` for a file of more than 1 MiB; `InvalidArgument` for any other error, with the line as the subject.
    pub fn parse_yaml(text: &str) -> Result<Schema> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                "schema",
                format!("more than {SCHEMA_BYTES_MAX} bytes"),
            ));
        }
        let trouble = |t: YamlFault| Error::new(Code::InvalidArgument, format!("schema line {}", t.line), t.why);
        yaml::parse(text).and_then(|root| schema(&root)).map_err(trouble)
    }
}

const FIELDS: [&str; 10] = [
    "name",
    "generation",
    "doc",
    "open",
    "same_key",
    "retention",
    "retention_by_dataset",
    "durability",
    "key",
    "attributes",
];
const ATTRIBUTE_FIELDS: [&str; 7] = ["type", "unit", "values", "range", "aliases", "default", "doc"];

fn schema(root: &YamlNode) -> Read<Schema> {
    let fields = YamlFields::new(root, "a schema", &FIELDS)?;
    let name = fields.need("name")?;
    let keyed = keyed_names(fields.need("key")?)?;
    let (attributes, level_ends) = attributes(fields.need("attributes")?, &keyed)?;
    let parts = SchemaParts {
        name: name_of(name.text("name")?, name.line)?,
        generation: fields
            .read("generation", "a number from 1", |text| {
                text.parse().ok().filter(|&n| n > 0)
            })?
            .unwrap_or(1),
        doc: fields.text("doc")?,
        open: fields
            .read("open", "true or false", |text| bool::from_str(text).ok())?
            .unwrap_or(false),
        same_key: fields
            .read("same_key", "reject or supersede", same_key)?
            .unwrap_or(SameKey::Reject),
        durability: fields
            .read("durability", "memory, replicated or durable", durability)?
            .unwrap_or(Durability::Memory),
        retention: fields
            .get("retention")
            .map_or(Ok(Retention::UntilWithdrawn), default_retention::retention)?,
        attributes,
        level_ends,
    };
    let twice = |name: String| YamlFault::new(root.line, format!("{name} names two attributes"));
    let mut schema = Schema::of(parts).map_err(twice)?;
    if let Some(node) = fields.get("retention_by_dataset") {
        schema.retention_rules = default_retention::rules(node, &schema)?;
    }
    Ok(schema)
}

fn name_of(text: &str, line: usize) -> Read<String> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    let rule = "up to 64 letters, digits and _.:-, the first a letter or _, and no word that selectors use";
    Err(YamlFault::new(line, format!("{text:?} is not a name ({rule})")))
}

fn same_key(text: &str) -> Option<SameKey> {
    match text {
        "reject" => Some(SameKey::Reject),
        "supersede" => Some(SameKey::Supersede),
        _ => None,
    }
}

fn durability(text: &str) -> Option<Durability> {
    match text {
        "memory" => Some(Durability::Memory),
        "replicated" => Some(Durability::Replicated),
        "durable" => Some(Durability::Durable),
        _ => None,
    }
}

/// An attribute that the key names.
struct KeyedAttribute<'a> {
    name: &'a str,
    line: usize,
    level: usize,
    optional: bool,
}

fn keyed_names(node: &YamlNode) -> Read<Vec<KeyedAttribute<'_>>> {
    let levels = YamlFields::new(node, "the key", &LEVELS)?;
    let mut keyed: Vec<KeyedAttribute<'_>> = Vec::new();
    for (level, level_name) in LEVELS.into_iter().enumerate() {
        let Some(node) = levels.get(level_name) else { continue };
        for item in node.list(level_name)? {
            let text = item.text(level_name)?;
            let name = text.strip_suffix('?').unwrap_or(text);
            if keyed.len() == ATTRIBUTES_MAX {
                let why = format!("the key has more than {ATTRIBUTES_MAX} attributes");
                return Err(YamlFault::new(item.line, why));
            }
            if keyed.iter().any(|other| other.name == name) {
                return Err(YamlFault::new(item.line, format!("{name} occurs twice in the key")));
            }
            keyed.push(KeyedAttribute {
                name,
                line: item.line,
                level,
                optional: text.ends_with('?'),
            });
        }
    }
    if keyed.is_empty() {
        return Err(YamlFault::new(node.line, "the key needs at least one attribute"));
    }
    Ok(keyed)
}

/// Parses all attributes, by ID, and the ends of the key's levels.
fn attributes(node: &YamlNode, keyed: &[KeyedAttribute<'_>]) -> Read<(Vec<Attribute>, [usize; 3])> {
    let entries = node.map("attributes")?;
    if entries.len() > ATTRIBUTES_MAX {
        return Err(YamlFault::new(
            node.line,
            format!("more than {ATTRIBUTES_MAX} attributes"),
        ));
    }
    let mut all = Vec::with_capacity(entries.len());
    for key in keyed {
        let missing = || {
            YamlFault::new(
                key.line,
                format!("the key names {}, which is not among the attributes", key.name),
            )
        };
        let entry = entries
            .iter()
            .find(|entry| entry.name == key.name)
            .ok_or_else(missing)?;
        all.push(attribute(entry, Some(key))?);
    }
    for entry in entries
        .iter()
        .filter(|entry| keyed.iter().all(|key| key.name != entry.name))
    {
        all.push(attribute(entry, None)?);
    }
    let end = |level| keyed.iter().filter(|key| key.level <= level).count();
    Ok((all, [end(0), end(1), end(2)]))
}

fn attribute(entry: &YamlEntry, key: Option<&KeyedAttribute<'_>>) -> Read<Attribute> {
    let named = |trouble: YamlFault| YamlFault::new(trouble.line, format!("{}: {}", entry.name, trouble.why));
    attribute_fields(entry, key).map_err(named)
}

fn attribute_fields(entry: &YamlEntry, key: Option<&KeyedAttribute<'_>>) -> Read<Attribute> {
    let name = name_of(&entry.name, entry.line)?;
    let fields = YamlFields::new(&entry.value, "an attribute", &ATTRIBUTE_FIELDS)?;
    let kind_node = fields.need("type")?;
    let kind = kind_of(kind_node.text("type")?, kind_node.line)?;
    if key.is_some() && (kind.list || kind.scalar == Type::Float) {
        return Err(YamlFault::new(
            kind_node.line,
            format!("a {kind} cannot be part of the key"),
        ));
    }
    let range = range(&fields, kind.scalar)?;
    let mut attribute = Attribute {
        name,
        kind,
        unit: fields.text("unit")?,
        values: canonical_list(&fields, "values", kind.scalar, ALLOWED_VALUES_MAX)?,
        bounds: range.as_ref().map(|range| range.1),
        range: range.map(|range| range.0),
        aliases: aliases(&fields)?,
        default: None,
        doc: fields.text("doc")?,
        level: key.map(|key| key.level),
        optional: key.is_none_or(|key| key.optional),
    };
    if let Some(node) = fields.get("default") {
        attribute.default = Some(default(node, &attribute)?);
    }
    Ok(attribute)
}

/// Names of types in other languages.
const ELSEWHERE: [(&[&str], &str); 6] = [
    (&["int", "int32", "int64", "long", "uint"], "integer"),
    (&["str", "text", "char", "enum"], "string"),
    (&["double", "real", "float32", "float64"], "float"),
    (&["number", "numeric"], "decimal"),
    (&["boolean", "logical"], "bool"),
    (&["datetime", "datetime64"], "timestamp"),
];

fn kind_of(text: &str, line: usize) -> Read<Kind> {
    let known = || Type::ALL.map(Type::name).join(", ");
    Kind::from_name(text).ok_or_else(|| {
        let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.contains(&text));
        let meant = elsewhere.map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"));
        YamlFault::new(
            line,
            format!("{text:?} is no type ({}, or list of one){meant}", known()),
        )
    })
}

fn canonical(node: &YamlNode, what: &str, scalar: Type) -> Read<String> {
    let text = node.text(what)?;
    if text.len() > VALUE_BYTES_MAX {
        return Err(YamlFault::new(
            node.line,
            format!("{what}: more than {VALUE_BYTES_MAX} bytes"),
        ));
    }
    let mut out = String::new();
    scalar
        .canonical(Given::Text(text), &mut out)
        .map_err(|why| YamlFault::new(node.line, format!("{what}: {why}")))?;
    Ok(out)
}

fn canonical_list(fields: &YamlFields<'_>, what: &str, scalar: Type, most: usize) -> Read<Vec<String>> {
    let Some(node) = fields.get(what) else {
        return Ok(Vec::new());
    };
    let items = node.list(what)?;
    if items.is_empty() || items.len() > most {
        return Err(YamlFault::new(node.line, format!("{what} must have 1 to {most} items")));
    }
    items.iter().map(|item| canonical(item, what, scalar)).collect()
}

type Range = ((String, String), (i128, i128));

fn range(fields: &YamlFields<'_>, scalar: Type) -> Read<Option<Range>> {
    let Some(node) = fields.get("range") else {
        return Ok(None);
    };
    let ends: [String; 2] = canonical_list(fields, "range", scalar, 2)?
        .try_into()
        .map_err(|_| YamlFault::new(node.line, "range must be [smallest, largest]"))?;
    let [smallest, largest] = ends;
    match (scalar.order(&smallest), scalar.order(&largest)) {
        (Some(low), Some(high)) if low <= high => Ok(Some(((smallest, largest), (low, high)))),
        (Some(_), Some(_)) => Err(YamlFault::new(
            node.line,
            "range: the largest is smaller than the smallest",
        )),
        _ => Err(YamlFault::new(
            node.line,
            format!("range: {smallest:?} to {largest:?} of {scalar} has no order"),
        )),
    }
}

fn aliases(fields: &YamlFields<'_>) -> Read<Vec<String>> {
    let Some(node) = fields.get("aliases") else {
        return Ok(Vec::new());
    };
    let items = node.list("aliases")?;
    if items.len() > ALIASES_MAX {
        return Err(YamlFault::new(node.line, format!("more than {ALIASES_MAX} aliases")));
    }
    items
        .iter()
        .map(|item| name_of(item.text("aliases")?, item.line))
        .collect()
}

fn default(node: &YamlNode, attribute: &Attribute) -> Read<String> {
    if attribute.level.is_none() {
        return Err(YamlFault::new(
            node.line,
            "only attributes of the key may have a default",
        ));
    }
    let text = canonical(node, "default", attribute.kind.scalar)?;
    let allowed = attribute.allows(&text);
    allowed
        .then_some(text)
        .ok_or_else(|| YamlFault::new(node.line, "the default is not among the allowed values"))
}
