//! Default retention of objects: that of the first rule that matches their dataset, else that of the schema.
//!
//! ```yaml
//! retention: withdrawn
//! retention_by_dataset:
//!   - {where: "class=od,stream=oper", retention: {released_by: [archive]}}
//!   - {where: "class=rd", retention: {for: 10min}}
//! ```
//!
//! A rule uses only attributes of the first level of the key, so it applies to datasets and not to single objects.

use super::{Retention, Schema, retention};
use crate::limits::RETENTION_RULES_MAX;
use crate::record::RecordRef;
use crate::schema::Consumers;
use crate::selector::Selector;
use crate::yaml::{Read, YamlFault, YamlFields, YamlNode};

/// The retention of some datasets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RetentionRule {
    pub(super) selector: Selector,
    pub(super) retention: Retention,
}

// A selector contains no floats, only text and integers.
impl Eq for RetentionRule {}

impl Schema {
    /// Returns the default retention of datasets without a rule.
    #[must_use]
    pub fn default_retention(&self) -> &Retention {
        &self.retention
    }

    /// Returns the default retention of an object; the record must belong to this schema.
    #[must_use]
    pub fn retention_of(&self, record: RecordRef<'_>) -> &Retention {
        let mut rules = self.retention_rules.iter();
        let rule = rules.find(|rule| rule.selector.matches(record));
        rule.map_or(&self.retention, |rule| &rule.retention)
    }

    /// Iterates over all default retentions.
    pub fn default_retentions(&self) -> impl Iterator<Item = &Retention> {
        let rules = self.retention_rules.iter().map(|rule| &rule.retention);
        rules.chain([&self.retention])
    }
}

/// Parses `withdrawn`, `archived`, `{released: 2}`, `{released_by: [archive]}` or `{for: 10min}`.
pub(super) fn retention(node: &YamlNode) -> Read<Retention> {
    match node.text("retention") {
        Ok("withdrawn") => return Ok(Retention::UntilWithdrawn),
        Ok("archived") => return Ok(Retention::until_archived()),
        _ => {}
    }
    let expected = || {
        let forms = "withdrawn, or archived, or {released: N} with N from 1, or {released_by: [NAME, ...]}, or {for: TIME} with a time such as 10min";
        YamlFault::new(node.line, format!("retention must be {forms}"))
    };
    let given = YamlFields::new(node, "retention", &["released", "released_by", "for"]).map_err(|_| expected())?;
    let released = given.read("released", "a number from 1", |text| {
        text.parse().ok().filter(|&n| n > 0).map(Retention::Released)
    })?;
    let released_by = given.get("released_by").map(consumers).transpose()?;
    let time = given.read("for", "a time of at most 49d, such as 10min", |text| {
        Retention::for_time(text).and_then(|retention| retention.check().ok())
    })?;
    let mut said = [released, released_by, time].into_iter().flatten();
    match (said.next(), said.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(expected()),
    }
}

fn consumers(node: &YamlNode) -> Read<Retention> {
    let items = node.list("released_by")?;
    let names = items
        .iter()
        .map(|item| item.text("released_by"))
        .collect::<Read<Vec<_>>>()?;
    let trouble = |error: crate::Error| {
        YamlFault::new(
            node.line,
            format!("released_by: {}: {}", error.subject(), error.cause()),
        )
    };
    Consumers::new(names).map(Retention::ReleasedBy).map_err(trouble)
}

/// Parses the rules of a schema that is otherwise complete.
pub(super) fn rules(node: &YamlNode, schema: &Schema) -> Read<Vec<RetentionRule>> {
    let items = node.list("retention_by_dataset")?;
    if items.len() > RETENTION_RULES_MAX {
        return Err(YamlFault::new(
            node.line,
            format!("more than {RETENTION_RULES_MAX} rules"),
        ));
    }
    items.iter().map(|item| rule(item, schema)).collect()
}

fn rule(node: &YamlNode, schema: &Schema) -> Read<RetentionRule> {
    let fields = YamlFields::new(node, "a rule of retention", &["where", "retention"])?;
    let which = fields.need("where")?;
    let trouble = |why: String| YamlFault::new(which.line, format!("where: {why}"));
    let selector = Selector::parse(which.text("where")?, schema).map_err(|error| trouble(error.to_string()))?;
    let first_level = schema.level_ends()[0];
    if let Some(name) = selector.asks_beyond(first_level) {
        return Err(trouble(format!(
            "{name} is not an attribute of the first level of the key"
        )));
    }
    Ok(RetentionRule {
        selector,
        retention: retention(fields.need("retention")?)?,
    })
}

/// Returns a retention as written in a schema file.
pub(super) fn in_a_file(given: &Retention) -> String {
    match given {
        Retention::UntilWithdrawn => "withdrawn".to_owned(),
        Retention::Released(count) => format!("{{released: {count}}}"),
        Retention::ReleasedBy(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            format!("{{released_by: [{}]}}", names.join(", "))
        }
        Retention::For(time) => format!("{{for: {}}}", retention::time(*time)),
    }
}
