//! What must hold for any attributes, any bytes and any text.

#![allow(clippy::format_collect, reason = "escapes of a few characters")]

use std::sync::Arc;

use junctura_model::{Code, Cursor, Given, Phase, RecordRef, Schema, Type, Version, list_items, requirements};
use proptest::prelude::*;

use crate::limits::Limits;

/// A record, its key and an error that quotes what is wrong.
const RECORD_LIMITS: Limits = Limits {
    held_bytes: 4 << 10,
    held_bytes_each: 32,
    steps: 200,
    steps_each: 4,
};
/// A schema file: nodes of YAML, and the attributes made of them.
const SCHEMA_LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 1024,
    steps: 1000,
    steps_each: 16,
};

const SCHEMA: &str = "
name: all
open: true
key:
  dataset: [string, \"integer?\", \"date?\"]
  collocation: [\"decimal?\", \"time?\"]
  element: [step, \"bool?\", \"timestamp?\", \"duration?\", \"short?\"]
attributes:
  string: {type: string}
  integer: {type: integer}
  date: {type: date}
  decimal: {type: decimal}
  time: {type: time}
  step: {type: step, default: 0}
  bool: {type: bool}
  timestamp: {type: timestamp}
  duration: {type: duration}
  short: {type: string, values: [a, \"b c\", \"\\\"\"]}
  float: {type: float}
  strings: {type: list of string}
  decimals: {type: list of decimal}
  few: {type: integer, range: [-5, 5]}
";

fn schema() -> Arc<Schema> {
    static PARSED: std::sync::OnceLock<Arc<Schema>> = std::sync::OnceLock::new();
    PARSED
        .get_or_init(|| Arc::new(Schema::parse_yaml(SCHEMA).unwrap()))
        .clone()
}

/// Texts that are awkward, and texts that nearly are values of some type.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]{0,6}",
        "[ -~]{0,8}",
        ".{0,6}",
        any::<String>(),
        "[+-]?[0-9]{1,19}(\\.[0-9]{1,19})?",
        "[12][0-9]{3}-?(0[1-9]|1[0-2])-?(0[1-9]|[12][0-9]|3[01])",
        "[0-9]{1,2}:?[0-9]{2}",
        "[0-9]{1,4}[smhd]?(-[0-9]{1,4}[smhd]?)?",
        "([0-9]{1,5}(d|h|m|s|ms|us|ns)){1,3}",
        "[12][0-9]{3}-0[1-9]-[012][0-9]T[012][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-][01][0-9]:[0-5][0-9])",
        "(to|BY|and|Or|not|exists|true|false|a|b c|\")",
    ]
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Value>),
}

impl Value {
    fn with<R>(&self, use_it: impl FnOnce(Given<'_>) -> R) -> R {
        match self {
            Value::Text(text) => use_it(Given::Text(text)),
            Value::Integer(number) => use_it(Given::Integer(*number)),
            Value::Float(number) => use_it(Given::Float(*number)),
            Value::Bool(truth) => use_it(Given::Bool(*truth)),
            Value::List(items) => use_it(Given::List(&items.iter().map(Value::scalar).collect::<Vec<_>>())),
        }
    }

    fn scalar(&self) -> Given<'_> {
        match self {
            Value::Text(text) => Given::Text(text),
            Value::Integer(number) => Given::Integer(*number),
            Value::Float(number) => Given::Float(*number),
            Value::Bool(truth) => Given::Bool(*truth),
            Value::List(_) => Given::List(&[]),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        4 => text().prop_map(Value::Text),
        1 => any::<i64>().prop_map(Value::Integer),
        1 => (-10i64..30_000).prop_map(Value::Integer),
        1 => any::<f64>().prop_map(Value::Float),
        1 => (-1000i32..1000).prop_map(|n| Value::Float(f64::from(n) / 8.0)),
        1 => any::<bool>().prop_map(Value::Bool),
    ];
    let list = prop::collection::vec(scalar.clone(), 0..4).prop_map(Value::List);
    prop_oneof![5 => scalar, 1 => list]
}

/// Some attributes that the schema takes: drawn, and those that are refused left out.
fn attributes() -> impl Strategy<Value = Vec<(String, Value)>> {
    let name = prop_oneof![
        9 => prop::sample::select(schema().attributes().iter().map(|a| a.name.clone()).collect::<Vec<_>>()),
        1 => "[a-z]{1,3}",
    ];
    prop::collection::vec((name, value()), 0..40).prop_map(|drawn| {
        let mut kept: Vec<(String, Value)> = vec![("string".into(), Value::Text("s".into()))];
        for (name, value) in drawn {
            let mut tried = kept.clone();
            tried.retain(|(known, _)| *known != name);
            tried.push((name, value));
            if record(&tried).is_ok() {
                kept = tried;
            }
        }
        kept
    })
}

fn record(attributes: &[(String, Value)]) -> junctura_model::Result<Vec<u8>> {
    let lists: Vec<Vec<Given<'_>>> = attributes
        .iter()
        .map(|(_, value)| match value {
            Value::List(items) => items.iter().map(Value::scalar).collect(),
            _ => Vec::new(),
        })
        .collect();
    let given = attributes.iter().zip(&lists).map(|((name, value), items)| {
        let given = if matches!(value, Value::List(_)) {
            Given::List(items)
        } else {
            value.scalar()
        };
        (name.as_str(), given)
    });
    let mut out = Vec::new();
    schema().record(given, &mut out)?;
    Ok(out)
}

/// What was read from a record, given again.
fn again(bytes: &[u8]) -> Vec<(String, Value)> {
    let schema = schema();
    let value = |list: bool, text: &str| {
        let one = |text: &str| Value::Text(text.to_owned());
        if list {
            Value::List(list_items(text).map(|item| one(&item)).collect())
        } else {
            one(text)
        }
    };
    let attributes = RecordRef::trusted(bytes).iter().map(|(id, name, text)| match name {
        Some(name) => (name.to_owned(), value(false, text)),
        None => (
            schema.attribute(id).name.clone(),
            value(schema.attribute(id).kind.list, text),
        ),
    });
    attributes.collect()
}

proptest! {
    #[test]
    fn a_record_checks_and_is_a_fixed_point(attributes in attributes()) {
        let bytes = record(&attributes).unwrap();
        prop_assert_eq!(schema().check(&bytes).unwrap().as_bytes(), &bytes[..]);
        prop_assert_eq!(&record(&again(&bytes)).unwrap(), &bytes);
        let mut reversed = attributes;
        reversed.reverse();
        prop_assert_eq!(&record(&reversed).unwrap(), &bytes);

        let schema = schema();
        let (mut key, mut same) = (String::new(), String::new());
        schema.key_of(RecordRef::trusted(&bytes), &mut key);
        let parsed = schema.parse_key(&key).unwrap();
        prop_assert_eq!(parsed.as_ref().as_bytes(), RecordRef::trusted(&bytes).key_bytes(schema.key_len()));
        schema.key_of(parsed.as_ref(), &mut same);
        prop_assert_eq!(key, same);
    }

    #[test]
    fn changed_bytes_are_refused_or_another_canonical_record(
        attributes in attributes(), at in any::<prop::sample::Index>(), change in 0usize..4, byte in any::<u8>()
    ) {
        let mut bytes = record(&attributes).unwrap();
        let at = at.index(bytes.len());
        match change {
            0 => bytes[at] = byte,
            1 => bytes.truncate(at),
            2 => bytes.insert(at, byte),
            _ => { bytes.remove(at); }
        }
        if RECORD_LIMITS.hold(bytes.len(), || schema().check(&bytes).is_ok()) {
            prop_assert_eq!(record(&again(&bytes)).unwrap(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_met_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let schema = schema();
        RECORD_LIMITS.hold(bytes.len(), || {
            let _ = schema.check(&bytes);
            let record = RecordRef::trusted(&bytes);
            let mut key = String::new();
            schema.key_of(record, &mut key);
            let _ = (record.iter().count(), record.get_open("a"), record.key_bytes(3));
        });
    }

    #[test]
    fn any_text_is_met_without_panic(text in any::<String>(), nearly in "[a-z:{}\\[\\], \n\"?#&*!0-9-]{0,80}") {
        let schema = schema();
        for text in [&text, &nearly] {
            SCHEMA_LIMITS.hold(text.len(), || {
                let _ = (Schema::parse_yaml(text), Schema::parse_file(text, "x"), requirements::parse_yaml(text));
            });
            RECORD_LIMITS.hold(text.len(), || {
                let _ = (schema.parse_key(text), list_items(text).count());
                let _ = (text.parse::<Cursor>(), text.parse::<Version>());
            });
        }
    }

    #[test]
    fn what_is_canonical_is_what_canonical_writes(text in text(), value in value()) {
        for kind in Type::ALL {
            let mut out = String::new();
            let taken = kind.canonical(Given::Text(&text), &mut out).is_ok();
            prop_assert_eq!(kind.is_canonical(&text), taken && out == text, "{} {:?} {:?}", kind, text, out);
            let mut out = String::new();
            if value.with(|given| kind.canonical(given, &mut out)).is_ok() {
                prop_assert!(kind.is_canonical(&out), "{} {:?}", kind, out);
            }
        }
    }

    #[test]
    fn numbers_order_as_their_values(a in any::<i64>(), b in any::<i64>(), x in any::<f64>(), y in any::<f64>(), places in 0u32..10) {
        let order = |kind: Type, text: &str| kind.order(text).unwrap();
        let as_decimal = |n: i64| {
            let unit = 10i128.pow(places);
            // Kept to 18 digits.
            let n = i128::from(n) / 100;
            format!("{}{}.{:0width$}", if n < 0 { "-" } else { "" }, n.abs() / unit, n.abs() % unit, width = places.max(1) as usize)
        };
        prop_assert_eq!(a.cmp(&b), order(Type::Integer, &a.to_string()).cmp(&order(Type::Integer, &b.to_string())));
        prop_assert_eq!((a / 100).cmp(&(b / 100)), order(Type::Decimal, &as_decimal(a)).cmp(&order(Type::Decimal, &as_decimal(b))));
        if x.is_finite() && y.is_finite() {
            let text = |number: f64| {
                let mut out = String::new();
                Type::Float.canonical(Given::Float(number), &mut out).unwrap();
                assert!(out.parse() == Ok(number), "a float reads back");
                out
            };
            prop_assert_eq!(x.partial_cmp(&y), order(Type::Float, &text(x)).partial_cmp(&order(Type::Float, &text(y))));
        }
    }

    #[test]
    fn moments_and_lengths_order_as_their_numbers(a in 0u64..4_000_000, b in 0u64..4_000_000) {
        let cmp = |kind: Type, text: &dyn Fn(u64) -> String| {
            let order = |n| {
                let mut out = String::new();
                kind.canonical(Given::Text(&text(n)), &mut out).unwrap();
                kind.order(&out).unwrap()
            };
            order(a).cmp(&order(b))
        };
        prop_assert_eq!(a.cmp(&b), cmp(Type::Step, &|n| format!("{n}s")));
        prop_assert_eq!(a.cmp(&b), cmp(Type::Duration, &|n| format!("{n}us")));
        let stamp = |n: u64| format!("2026-01-{:02}T{:02}:{:02}:{:02}Z", n / 86_400 % 28 + 1, n / 3600 % 24, n / 60 % 60, n % 60);
        prop_assert_eq!(stamp(a).cmp(&stamp(b)), cmp(Type::Timestamp, &stamp));
    }

    #[test]
    fn versions_cursors_and_codes_read_back(
        incarnation in any::<u64>(), sequence in any::<u64>(), key in ".{0,40}", sorted in prop::option::of(".{0,10}"), live in any::<bool>()
    ) {
        let version = Version { incarnation, sequence };
        prop_assert_eq!(version.to_string().parse::<Version>(), Ok(version));
        let first = Phase::First { snapshot: sequence, last_sort_value: sorted, last_key: key };
        let cursor = Cursor { incarnation, phase: if live { Phase::Live { last: sequence } } else { first } };
        prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
        let code = Code::ALL[(sequence % Code::ALL.len() as u64) as usize];
        prop_assert_eq!(Code::from_name(code.name()), Some(code));
        prop_assert_eq!(Code::from_number(code.number()), Some(code));
    }

    #[test]
    fn a_printed_schema_reads_back(doc in any::<String>(), unit in any::<String>(), default in any::<String>(), released in 1u32.., timed in any::<bool>()) {
        prop_assume!(default.len() < 1000);
        let quoted = |text: &str| format!("\"{}\"", text.chars().map(|c| format!("\\U{:08x}", c as u32)).collect::<String>());
        let (doc_text, default, unit) = (quoted(&doc), quoted(&default), quoted(&unit));
        let key = "key: {dataset: [a]}";
        let attributes = format!("attributes: {{a: {{type: string, default: {default}, unit: {unit}}}}}");
        let retention = if timed { format!("for: {released}ms") } else { format!("released: {released}") };
        let yaml = format!("name: n\ndoc: {doc_text}\nretention: {{{retention}}}\n{key}\n{attributes}");
        let schema = Schema::parse_yaml(&yaml).unwrap();
        prop_assert_eq!(schema.doc(), &doc);
        prop_assert_eq!(Schema::parse_yaml(&schema.to_yaml()).unwrap(), schema);
    }
}
