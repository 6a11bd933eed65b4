//! The attributes of an object from a GRIB header.
//!
//! Messages of centers that archive by MARS have all attributes that the `mars` schema requires. Those of other centers
//! have fewer, and these can be the same for two fields. So that their files are accepted all the same, each field by
//! itself:
//!
//! | where the header gives no | the object has |
//! |---|---|
//! | `class` | the centre that coded it, such as `kwbc` |
//! | `stream`, `type` | `unknown` |
//! | `levtype`, or an unknown one | the kind of level in the coder's words, such as `cloudTop` |
//!
//! [`MessageKeys::additional`] has the keys that distinguish two such fields; `docs/guide/grib.md` lists them.

use std::borrow::Cow;

use junctura::{Code, Error, Given, Result, Schema};
use junctura_grib::{KeyValue, MessageKeys};
use junctura_model::AttrId;

use crate::attributes::AttributePair;

/// The schema that GRIB messages are described by, unless another one is asked for.
pub(crate) const SCHEMA: &str = "mars";

/// Names and values.
pub(crate) type Attributes<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Returns the attributes of a message: those of its header, as far as the schema has them; values that the user set
/// override them.
///
/// # Errors
/// `InvalidArgument` for a step beyond [`HOURS_MAX`], which is one that overflowed where it was written.
pub(crate) fn attributes<'a>(
    keys: &'a MessageKeys,
    schema: &Schema,
    set: &'a [AttributePair],
) -> Result<Attributes<'a>> {
    let mut all: Attributes<'a> = set
        .iter()
        .map(|pair| (pair.name.as_str(), Cow::Borrowed(pair.value.as_str())))
        .collect();
    let mut seen: Vec<(&str, Option<AttrId>)> = all.iter().map(|(name, _)| (*name, schema.find(name))).collect();
    let mut add = |name: &'a str, value: Cow<'a, str>| {
        let id = schema.find(name);
        let is_new = !seen
            .iter()
            .any(|(known, seen)| *known == name || (id.is_some() && *seen == id));
        if is_new && (id.is_some() || schema.is_open()) {
            seen.push((name, id));
            all.push((name, value));
        }
    };
    if schema.name() == SCHEMA {
        for (name, value) in keys.additional() {
            add(name, text(value));
        }
    }
    for (name, value) in keys
        .attributes()
        .filter(|(name, value)| *name != "levtype" || is_known(value))
    {
        add(name, text(value));
    }
    let describing = keys
        .descriptive()
        .filter(|(name, value)| schema.find(name).is_some() && is_known(value));
    if schema.name() == SCHEMA {
        for (name, value) in stand_ins(keys) {
            add(name, value);
        }
    }
    // Where `param` is the short name already, once is enough.
    for (name, value) in describing.filter(|(name, _)| *name != "shortName") {
        add(name, text(value));
    }
    let step = all.iter().find(|(name, _)| *name == "step" && schema.name() == SCHEMA);
    step.map_or(Ok(()), |(_, step)| check_step(step))?;
    Ok(all)
}

/// Ten thousand years.
const HOURS_MAX: u64 = 10_000 * 8766;

fn check_step(step: &str) -> Result<()> {
    let numbers = step
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    let is_beyond = numbers
        .into_iter()
        .any(|digits| digits.parse().unwrap_or(u64::MAX) > HOURS_MAX);
    if is_beyond && !step.ends_with(['m', 's']) {
        let cause = format!(
            "{step} h is more than 10,000 years: the step overflowed where it was encoded; give it by --set step="
        );
        return Err(Error::new(Code::InvalidArgument, "step", cause));
    }
    Ok(())
}

/// As an offer takes them.
pub(crate) fn given<'a>(attributes: &'a Attributes<'a>) -> Vec<(&'a str, Given<'a>)> {
    attributes
        .iter()
        .map(|(name, value)| (*name, Given::Text(value)))
        .collect()
}

/// Values for keys that the header may lack.
fn stand_ins(keys: &MessageKeys) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    let or_unknown = |name: &str| {
        keys.get(name)
            .filter(|value| is_known(value))
            .map_or(Cow::Borrowed("unknown"), text)
    };
    [
        ("class", or_unknown("centre")),
        ("stream", Cow::Borrowed("unknown")),
        ("type", Cow::Borrowed("unknown")),
        ("levtype", or_unknown("typeOfLevel")),
    ]
    .into_iter()
}

/// Placeholders of ecCodes for unknown values.
fn is_known(value: &KeyValue) -> bool {
    !matches!(value.as_str(), Some("unknown" | "~" | ""))
}

fn text(value: &KeyValue) -> Cow<'_, str> {
    match value.as_str() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(value.to_string()),
    }
}
