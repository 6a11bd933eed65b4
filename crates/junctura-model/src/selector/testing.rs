//! Random selectors and records for tests here and above: the same seed gives the same ones on every machine.

use std::fmt::Write;

use crate::record::Record;
use crate::schema::{Attribute, Schema};
use crate::selector::quoted;
use crate::value::{Given, Type};

/// A small generator of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct TestRandom(pub u64);

impl TestRandom {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns one element.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const WORDS: &[&str] = &[
    "od",
    "rd",
    "t",
    "u",
    "v",
    "z",
    "2t",
    "pf",
    "fc",
    "0001",
    "x.y_z+1:2-3",
    "to",
    "BY",
    "and",
    "",
    "a b",
    "é",
    "日本",
    "a/b",
    "say \"x\"",
    "back\\slash",
    "line\nbreak",
    "\u{0}",
    "*",
    "(",
    "~",
    "a=b",
    ",",
    "not",
];
const PATTERNS: &[&str] = &["^a", "[tuv]$", "^2", "", "x|y", "\\d+", "\"", "0.*1", "-"];
const UNDECLARED: &[&str] = &["run", "member", "x_1", "CamelCase", "z9"];

/// Returns a random value as a user might write it, often one that other objects have; strings respect the schema.
#[must_use]
pub fn random_value(random: &mut TestRandom, attribute: &Attribute) -> String {
    if !attribute.values.is_empty() {
        return attribute.values[random.below(attribute.values.len())].clone();
    }
    random_scalar(random, attribute.kind.scalar)
}

fn random_scalar(random: &mut TestRandom, scalar: Type) -> String {
    let small = random.below(12);
    match scalar {
        Type::String => random.pick(WORDS).to_owned(),
        Type::Integer => small.to_string(),
        Type::Decimal => random
            .pick(&["500", "850", "1000", "0.5", "0.25", "137", "007", "500.0", "3"])
            .to_owned(),
        Type::Bool => random.pick(&["true", "false"]).to_owned(),
        Type::Date => format!("202611{:02}", small + 10),
        Type::Time => format!("{:02}{}", small * 2, random.pick(&["00", "30", ":00", ""])),
        Type::Step => random
            .pick(&[
                "0", "6", "12", "24", "90m", "1d", "0-24", "6-12", "45s", "240", "-6", "-6-0",
            ])
            .to_owned(),
        Type::Timestamp => format!("2026-11-20T{small:02}:00:00{}", random.pick(&["Z", ".5Z", "+01:00"])),
        Type::Duration => format!("{small}{}", random.pick(&["m", "h", "s", "ms", "d"])),
        Type::Float => random
            .pick(&["0.5", "-3.5", "1e300", "0", "1", "2.25", "1e-7"])
            .to_owned(),
    }
}

/// The text of a selector that the schema can read, in all sorts of spellings.
#[must_use]
pub fn random_selector(random: &mut TestRandom, schema: &Schema) -> String {
    if random.once_in(50) {
        return random.pick(&["", " ", "*", "  * "]).to_owned();
    }
    let mut text = String::new();
    let depth = random.below(5);
    put_selector(random, schema, depth, &mut text);
    text
}

fn put_selector(random: &mut TestRandom, schema: &Schema, depth: usize, out: &mut String) {
    if depth == 0 {
        return put_test(random, schema, out);
    }
    match random.below(8) {
        0 => {
            out.push_str(random.pick(&["not ", "NOT ", "not("]));
            let open = out.ends_with('(');
            put_unit(random, schema, depth - 1, out);
            out.push_str(if open { ")" } else { "" });
        }
        1 => {
            out.push_str("( ");
            put_selector(random, schema, depth - 1, out);
            out.push(')');
        }
        kind => {
            let separators: &[&str] = match kind {
                2 | 3 => &[",", " , "],
                4 | 5 => &[" and ", " AND "],
                _ => &[" or ", "\tOr\n"],
            };
            for part in 0..2 + random.below(2) {
                if part > 0 {
                    out.push_str(random.pick(separators));
                }
                put_unit(random, schema, depth - 1, out);
            }
        }
    }
}

/// Appends an operand between two separators.
fn put_unit(random: &mut TestRandom, schema: &Schema, depth: usize, out: &mut String) {
    if depth == 0 || random.once_in(4) {
        return put_test(random, schema, out);
    }
    out.push('(');
    put_selector(random, schema, depth - 1, out);
    out.push(')');
}

fn put_test(random: &mut TestRandom, schema: &Schema, out: &mut String) {
    if schema.is_open() && (schema.attributes().is_empty() || random.once_in(2)) {
        let (name, value) = (random.pick(UNDECLARED), random.pick(WORDS));
        out.push_str(name);
        out.push_str(random.pick(&["=", "!=", " = "]));
        return out.push_str(&quoted(value));
    }
    let attribute = &schema.attributes()[random.below(schema.attributes().len())];
    let names: Vec<&str> = std::iter::once(&attribute.name)
        .chain(&attribute.aliases)
        .map(String::as_str)
        .collect();
    let name = random.pick(&names);
    let scalar = attribute.kind.scalar;
    let value = |random: &mut TestRandom| quoted(&random_value(random, attribute));
    let done = match random.below(10) {
        0 => write!(out, "exists({name})"),
        1 => write!(out, "{name} = *"),
        2 => write!(out, "{name}~{}", quoted(random.pick(PATTERNS))),
        3 | 4 if scalar.is_ordered() => {
            let op = random.pick(&["<", "<=", ">", " >= "]);
            write!(out, "{name}{op}{}", bound(random, attribute))
        }
        5 | 6 if scalar.is_ordered() => {
            let (first, last) = (bound(random, attribute), bound(random, attribute));
            let by = by(random, scalar);
            let op = random.pick(&["=", "!="]);
            write!(out, "{name}{op}{first}/to/{last}{by}")
        }
        _ => {
            let items: Vec<String> = (0..=random.below(4) * random.below(4)).map(|_| value(random)).collect();
            write!(out, "{name}{}{}", random.pick(&["=", "=", "=", "!="]), items.join("/"))
        }
    };
    debug_assert!(done.is_ok());
}

/// A value that can be compared with.
fn bound(random: &mut TestRandom, attribute: &Attribute) -> String {
    if attribute.kind.scalar == Type::Timestamp && random.once_in(3) {
        return random.pick(&["2026-11-20", "20261121", "0001-01-01"]).to_owned();
    }
    loop {
        let text = random_value(random, attribute);
        let mut canonical = String::new();
        let read = attribute.kind.scalar.canonical(Given::Text(&text), &mut canonical);
        if read.is_ok() && attribute.kind.scalar.order(&canonical).is_some() {
            return quoted(&text);
        }
    }
}

fn by(random: &mut TestRandom, scalar: Type) -> String {
    let widths: &[&str] = match scalar {
        Type::Integer => &["", "/by/2", "/by/1", "/BY/5"],
        Type::Decimal => &["", "/by/0.25", "/by/50"],
        Type::Date => &["", "/by/2", "/by/99999999999999999999"],
        Type::Time => &["/by/6", "/by/30m", "/by/90m", "/by/6h", "/by/99"],
        Type::Step => &["", "/by/6", "/by/90m", "/by/1d"],
        _ => &[""],
    };
    random.pick(widths).to_owned()
}

/// A record of the schema with random values; what may be absent often is.
///
/// # Panics
/// When the schema refuses what its own attributes allow.
#[must_use]
pub fn random_record(random: &mut TestRandom, schema: &Schema) -> Record {
    let mut given: Vec<(&str, Vec<String>, bool)> = Vec::new();
    for attribute in schema.attributes() {
        if attribute.optional && random.once_in(3) {
            continue;
        }
        let count = if attribute.kind.list { random.below(4) } else { 1 };
        let values = (0..count).map(|_| random_value(random, attribute)).collect();
        given.push((&attribute.name, values, attribute.kind.list));
    }
    if schema.is_open() {
        for name in UNDECLARED {
            if random.once_in(2) {
                given.push((name, vec![random.pick(WORDS).to_owned()], false));
            }
        }
    }
    let lists: Vec<Vec<Given<'_>>> = given
        .iter()
        .map(|(_, values, _)| values.iter().map(|value| Given::Text(value)).collect())
        .collect();
    let pairs = given
        .iter()
        .zip(&lists)
        .map(|((name, _, list), values)| (*name, if *list { Given::List(values) } else { values[0] }));
    let mut bytes = Vec::new();
    if let Err(error) = schema.record(pairs, &mut bytes) {
        panic!("{given:?}: {error}");
    }
    crate::record::RecordRef::trusted(&bytes).to_owned()
}
