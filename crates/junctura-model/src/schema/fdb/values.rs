//! Values and keys as FDB writes them, where it writes them in another way than we do.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::schema::Schema;
use crate::value::{Given, Type, step_ends};

/// Converts a value of FDB to the form that a type can parse: in FDB a step may have several units (`1h30m`), a number
/// an exponent (`1e-05`). Any other value is unchanged, and is checked by its type.
///
/// ```
/// # use junctura_model::Type;
/// # use junctura_model::schema::fdb_value;
/// assert_eq!(fdb_value(Type::Step, "0-1h30m"), "0m-90m");
/// assert_eq!(fdb_value(Type::Decimal, "1e-05"), "0.00001");
/// assert_eq!(fdb_value(Type::String, "0001"), "0001");
/// ```
#[must_use]
pub fn fdb_value(kind: Type, text: &str) -> Cow<'_, str> {
    let read = match kind {
        Type::Step => step(text),
        // A number prints without its exponent.
        Type::Decimal if text.contains(['e', 'E']) => text.parse().ok().map(|number: f64| number.to_string()),
        _ => None,
    };
    read.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Converts a step, or a range of steps, to canonical text.
fn step(text: &str) -> Option<String> {
    let mut canonical = String::new();
    Type::Step.canonical(Given::Text(text), &mut canonical).ok()?;
    Some(canonical)
}

/// The key of an object as FDB lists it: values bare, whatever they are, steps with the units that they need, and small numbers
/// with an exponent. The attributes
/// are those of a record, by id.
///
/// ```
/// # use junctura_model::Schema;
/// # use junctura_model::schema::fdb_key;
/// let mars = Schema::builtin("mars").unwrap();
/// let attributes = [("class", "od"), ("expver", "a b"), ("type", "fc"), ("step", "0m-90m")];
/// assert_eq!(fdb_key(&mars, attributes), "{class=od,expver=a b}{type=fc}{step=0-1h30m}");
/// ```
pub fn fdb_key<'a>(schema: &Schema, attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut levels = [const { String::new() }; 3];
    for (name, text) in attributes {
        let Some(attribute) = schema.find(name).map(|id| schema.attribute(id)) else {
            break;
        };
        let Some(level) = attribute.level.map(|level| &mut levels[level]) else {
            break;
        };
        let comma = if level.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match attribute.kind.scalar {
            Type::Step => write!(level, "{comma}{name}={}", written_step(text)),
            Type::Decimal => write!(level, "{comma}{name}={}", written_decimal(text)),
            _ => write!(level, "{comma}{name}={text}"),
        };
    }
    let [dataset, collocation, element] = levels;
    format!("{{{dataset}}}{{{collocation}}}{{{element}}}")
}

/// A canonical step of ours, as FDB writes it.
fn written_step(text: &str) -> String {
    let whole = |end: &str| {
        let seconds = Type::Step.order(&step(end).unwrap_or_default());
        let size = seconds.and_then(|seconds| u64::try_from(seconds.unsigned_abs()).ok());
        let sign = if end.starts_with('-') { "-" } else { "" };
        size.map_or_else(|| end.to_owned(), |size| format!("{sign}{}", written(size)))
    };
    match step_ends(text) {
        Some((first, last)) => format!("{}-{}", whole(first), whole(last)),
        None => whole(text),
    }
}

/// A canonical decimal of ours, as FDB writes it: with an exponent below 0.0001.
fn written_decimal(text: &str) -> String {
    let is_small = text.trim_start_matches('-').starts_with("0.0000");
    let number = text.parse::<f64>().ok().filter(|_| is_small);
    let scientific = number.map(|number| format!("{number:e}"));
    let parts = scientific.as_deref().and_then(|text| text.split_once("e-"));
    parts.map_or_else(
        || text.to_owned(),
        |(digits, exponent)| format!("{digits}e-{exponent:0>2}"),
    )
}

/// Hours bare where there is nothing else, else the numbers that are not zero with their units.
fn written(seconds: u64) -> String {
    if seconds.is_multiple_of(3600) {
        return (seconds / 3600).to_string();
    }
    let parts = [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let mut text = String::new();
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number > 0) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{number}{unit}");
    }
    text
}
