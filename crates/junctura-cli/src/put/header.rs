//! What a GRIB header gives as attributes of an object.
//!
//! Messages of centres that archive by MARS say everything that the `mars` schema asks for. Those of other centres say less,
//! and what they say can be the same for two fields. So that their files go in all the same, each field by itself:
//!
//! | where the header gives no | the object has |
//! |---|---|
//! | `class` | the centre that coded it, such as `kwbc` |
//! | `stream`, `type` | `unknown` |
//! | `levtype`, or an unknown one | the kind of level in the coder's words, such as `cloudTop` |
//! | `levelist`, in a layer of edition 2 | the value of the layer's first surface |

use std::borrow::Cow;

use junctura::{Given, Schema};
use junctura_grib::{Keys, Message, Value};
use junctura_model::AttrId;

use crate::attributes::Pair;

/// The schema that GRIB messages are described by, unless another one is asked for.
pub(crate) const SCHEMA: &str = "mars";

/// Names and values.
pub(crate) type Attributes<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// The attributes of a message: what its header says, as far as the schema knows it, but what the user set stands.
pub(crate) fn attributes<'a>(
    message: &Message<'_>,
    keys: &'a Keys,
    schema: &Schema,
    set: &'a [Pair],
) -> Attributes<'a> {
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
        for (name, value) in stand_ins(message, keys) {
            add(name, value);
        }
    }
    // Where `param` says the short name already, once is enough.
    for (name, value) in describing.filter(|(name, _)| *name != "shortName") {
        add(name, text(value));
    }
    all
}

/// As an offer takes them.
pub(crate) fn given<'a>(attributes: &'a Attributes<'a>) -> Vec<(&'a str, Given<'a>)> {
    attributes
        .iter()
        .map(|(name, value)| (*name, Given::Text(value)))
        .collect()
}

/// What stands in for keys that the header may lack.
fn stand_ins<'a>(message: &Message<'_>, keys: &'a Keys) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
    let or_unknown = |name: &str| {
        keys.get(name)
            .filter(|value| is_known(value))
            .map_or(Cow::Borrowed("unknown"), text)
    };
    let plain = [
        ("class", or_unknown("centre")),
        ("stream", Cow::Borrowed("unknown")),
        ("type", Cow::Borrowed("unknown")),
        ("levtype", or_unknown("typeOfLevel")),
    ];
    plain
        .into_iter()
        .chain(layer(message.bytes()).map(|value| ("levelist", Cow::Owned(value))))
}

/// The first surface of a layer, in a message of edition 2.
///
/// ```text
/// section 4, octet  8-9 template   23 type   24 scale   25-28 value   29 type   30 scale   31-34 value
///                                  └──── first surface ───────────┘   └──── second surface ─────────┘
/// ```
fn layer(message: &[u8]) -> Option<String> {
    const MISSING: u8 = 255;
    /// Templates up to this one have the surfaces in the same place.
    const TEMPLATE_MAX: u16 = 15;
    let section = product(message)?;
    let template = u16::from_be_bytes([*section.get(7)?, *section.get(8)?]);
    let surfaces = section.get(22..34)?;
    let value = u32::from_be_bytes(surfaces.get(2..6)?.try_into().ok()?);
    if template > TEMPLATE_MAX || surfaces[0] == MISSING || surfaces[6] == MISSING || surfaces[1] & 0x80 != 0 {
        return None;
    }
    decimal(value, usize::from(surfaces[1]))
}

/// Section 4 of a message of edition 2.
fn product(message: &[u8]) -> Option<&[u8]> {
    let mut rest = message.get(16..).filter(|_| message.get(7) == Some(&2))?;
    loop {
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let section = rest.get(..length).filter(|section| section.len() >= 5)?;
        if section[4] == 4 {
            return Some(section);
        }
        rest = &rest[length..];
    }
}

/// The number with so many of its digits after the point, where a decimal has room for them.
fn decimal(number: u32, places: usize) -> Option<String> {
    let digits = format!("{number:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    (places <= 9).then(|| {
        if places == 0 {
            whole.to_owned()
        } else {
            format!("{whole}.{fraction}")
        }
    })
}

/// ecCodes' words for what it has no word for say nothing.
fn is_known(value: &Value) -> bool {
    !matches!(value.as_str(), Some("unknown" | "~" | ""))
}

fn text(value: &Value) -> Cow<'_, str> {
    match value.as_str() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 0, a section 1 of any bytes, and a section 4 with these surfaces.
    fn message(template: u16, surfaces: [u8; 12]) -> Vec<u8> {
        let mut message = b"GRIB\0\0\0\x02".to_vec();
        message.extend([0; 8]);
        message.extend([0, 0, 0, 21, 1]);
        message.extend([0; 16]);
        message.extend([0, 0, 0, 34, 4, 0, 0]);
        message.extend(template.to_be_bytes());
        message.extend([0; 13]);
        message.extend(surfaces);
        message
    }

    #[test]
    fn a_layer_has_a_level() {
        let both = [103, 0, 0, 0, 0x0b, 0xb8, 103, 0, 0, 0, 0, 0];
        assert_eq!(layer(&message(0, both)), Some("3000".to_owned()));
        assert_eq!(
            layer(&message(8, [106, 2, 0, 0, 0, 7, 106, 2, 0, 0, 0, 28])),
            Some("0.07".to_owned())
        );
        assert_eq!(layer(&message(0, [103, 0, 0, 0, 0, 2, 255, 0, 0, 0, 0, 0])), None);
        assert_eq!(layer(&message(1000, both)), None);
    }

    #[test]
    fn bytes_that_are_no_message_have_none() {
        let whole = message(0, [103, 0, 0, 0, 0, 2, 103, 0, 0, 0, 0, 0]);
        for end in 0..whole.len() {
            assert_eq!(layer(&whole[..end]), None);
        }
        assert_eq!(
            layer(&[&b"GRIB\0\0\0\x02\0\0\0\0\0\0\0\0"[..], &[0; 40]].concat()),
            None
        );
    }
}
