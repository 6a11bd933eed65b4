//! Schemas: read, printed, compared, refused.

use core::time::Duration;

use super::*;
use crate::error::Code;
use crate::record::RecordRef;
use crate::value::{Given, Type};

const SMALL: &str = "\
name: small
key:
  dataset: [a]
  element: [\"b?\", c]
attributes:
  note: {type: list of string}
  c: {type: integer, range: [0, 99], aliases: [see]}
  a: {type: string, values: [x, y], default: x, doc: first}
  b: {type: decimal, unit: hPa}
";

const RULES: &str = "\
retention: {released_by: [archive, a/b]}
retention_by_dataset:
  - {where: 'not(a=x),a=\"z z\"', retention: withdrawn}
  - where: a=x
    retention: {for: 10min}
  - {where: a=x/y, retention: {released_by: [archive]}}
";

fn small() -> Schema {
    Schema::parse_yaml(SMALL).unwrap()
}

#[test]
fn ids_are_in_key_order_then_in_file_order() {
    let schema = small();
    let names: Vec<&str> = schema.attributes().iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "note"]);
    assert_eq!((schema.key_len(), schema.level_ends()), (3, [1, 1, 3]));
    assert_eq!(schema.find("see"), Some(AttrId(2)));
    assert_eq!(schema.find("A"), None);
    let b = schema.attribute(AttrId(1));
    assert_eq!(
        (b.optional, b.level, b.unit.as_str(), b.kind),
        (true, Some(2), "hPa", Kind::one(Type::Decimal))
    );
    let note = schema.attribute(AttrId(3));
    assert_eq!((note.optional, note.level), (true, None));
    assert_eq!(schema.on_same_key(), SameKey::Reject);
    assert_eq!(schema.default_retention(), &Retention::UntilWithdrawn);
    assert_eq!(schema.default_durability(), Durability::Memory);
    assert_eq!((schema.generation(), schema.is_open()), (1, false));
}

#[test]
fn prints_as_a_file_that_reads_as_the_same_schema() {
    let rich = SMALL.to_owned()
        + "doc: \"say \\\"x\\\": \\\\ \\x07 {é, #}\"\ngeneration: 3\nopen: true\nsame_key: supersede\nretention: {released: 2}\ndurability: durable\n";
    let timed = SMALL.to_owned() + "retention: {for: 1h30min}\n";
    assert_eq!(
        Schema::parse_yaml(&timed).unwrap().default_retention(),
        &Retention::For(Duration::from_mins(90))
    );
    let ruled = SMALL.to_owned() + RULES;
    for text in [SMALL, &rich, &timed, &ruled] {
        let schema = Schema::parse_yaml(text).unwrap();
        assert_eq!(
            Schema::parse_yaml(&schema.to_yaml()).unwrap(),
            schema,
            "{}",
            schema.to_yaml()
        );
    }
    for name in Schema::BUILTIN_NAMES {
        let schema = Schema::builtin(name).unwrap();
        assert_eq!(schema.name(), name);
        assert_eq!(Schema::parse_yaml(&schema.to_yaml()).unwrap(), *schema);
    }
    assert!(Schema::builtin("none").is_none());
}

#[test]
fn every_attribute_of_a_built_in_schema_is_documented() {
    for name in Schema::BUILTIN_NAMES {
        let schema = Schema::builtin(name).unwrap();
        assert!(!schema.doc().is_empty());
        for attribute in schema.attributes() {
            assert!(!attribute.doc.is_empty(), "{name}: {}", attribute.name);
        }
    }
}

#[test]
fn the_fingerprint_covers_the_key_and_nothing_else() {
    let schema = small();
    let changed = |from: &str, to: &str| {
        assert!(SMALL.contains(from));
        Schema::parse_yaml(&SMALL.replace(from, to)).unwrap()
    };
    for (from, to) in [
        ("attributes:\n", "attributes:\n  more: {type: bool}\n"),
        ("doc: first", "doc: second"),
        ("aliases: [see]", "aliases: [sea]"),
        ("note: {type: list of string}", "note: {type: string}"),
        (
            "name: small\n",
            "name: small\nretention: {released: 1}\ndurability: durable\nsame_key: supersede\n",
        ),
        ("name: small\n", "name: small\nretention: {for: 10min}\n"),
        ("name: small\n", &format!("name: small\n{RULES}")),
    ] {
        let other = changed(from, to);
        assert_eq!(other.fingerprint(), schema.fingerprint(), "{to}");
        assert_eq!(schema.first_difference(&other), None);
        assert_eq!(schema.differences(&other).is_empty(), to.starts_with("doc"), "{to}");
    }
    let other = changed(
        "name: small\n",
        "name: small\nretention: {released: 1}\nsame_key: supersede\n",
    );
    assert_eq!(
        schema.differences(&other),
        [
            "same_key: reject here, supersede there",
            "retention: withdrawn here, {released: 1} there"
        ]
    );
    let other = changed("note: {type: list of string}", "more: {type: bool}");
    assert_eq!(
        schema.differences(&other),
        [
            "attribute note: here, but not there",
            "attribute more: there, but not here"
        ]
    );
    for (from, to, what) in [
        (
            "name: small",
            "name: large",
            "name: small in the one, large in the other",
        ),
        (
            "name: small\n",
            "name: small\ngeneration: 2\n",
            "key generation: 1 in the one, 2 in the other",
        ),
        (
            "name: small\n",
            "name: small\nopen: true\n",
            "open: false in the one, true in the other",
        ),
        (
            "type: decimal",
            "type: integer",
            "key attribute: b? (decimal, in element) in the one, b? (integer, in element) in the other",
        ),
        (
            "default: x",
            "default: y",
            "key attribute: a (string, in dataset, default x) in the one",
        ),
        (
            "b?",
            "b",
            "b? (decimal, in element) in the one, b (decimal, in element) in the other",
        ),
        (
            "dataset: [a]\n",
            "dataset: []\n  collocation: [a]\n",
            "a (string, in dataset",
        ),
        (", c]", "]", "key attribute c: in the one, but not in the other"),
    ] {
        let other = changed(from, to);
        assert_ne!(other.fingerprint(), schema.fingerprint(), "{to}");
        let difference = schema.first_difference(&other).unwrap();
        assert!(difference.contains(what), "{difference}");
        assert!(other.first_difference(&schema).is_some());
    }
    assert_eq!(schema.fingerprint().to_string().len(), 32);
}

#[test]
fn a_bad_file_is_refused_with_its_line_and_what_stands_there() {
    for (from, to, line, says) in [
        ("name: small", "name: small\ncolour: red", 2, "no field colour"),
        ("name: small\n", "", 1, "needs the field name"),
        ("name: small", "name: a b", 1, "\"a b\" is not a name"),
        ("name: small", "name: [x]", 1, "must be one value"),
        ("name: small", "name: small\nname: other", 2, "name occurs twice"),
        (
            "name: small",
            "name: small\ngeneration: 0",
            2,
            "generation must be a number from 1",
        ),
        ("name: small", "name: small\nopen: yes", 2, "open must be true or false"),
        (
            "name: small",
            "name: small\nsame_key: replace",
            2,
            "reject or supersede",
        ),
        ("name: small", "name: &x small", 1, "anchors"),
        ("name: small", "name: *x", 1, ""),
        ("name: small", "name: !!str small", 1, "tags"),
        ("dataset: [a]", "dataset: [a, c]", 4, "c occurs twice in the key"),
        (
            "dataset: [a]",
            "dataset: [a, note]",
            6,
            "note: a list of string cannot be part of the key",
        ),
        ("dataset: [a]", "dataset: [a, q]", 3, "the key names q"),
        ("dataset: [a]", "dataset: a", 3, "dataset must be a list"),
        ("dataset: [a]", "datasets: [a]", 3, "no field datasets"),
        ("type: decimal", "type: float", 0, "a float cannot be part of the key"),
        ("type: decimal", "type: number", 9, "b: \"number\" is no type"),
        ("type: decimal, ", "", 9, "b: an attribute needs the field type"),
        ("unit: hPa", "units: hPa", 9, "b: an attribute has no field units"),
        ("range: [0, 99]", "range: [0]", 7, "range must be [smallest, largest]"),
        ("range: [0, 99]", "range: [9, 0]", 7, "the largest is smaller"),
        ("range: [0, 99]", "range: [0, x]", 7, "range: \"x\" is no integer"),
        ("values: [x, y]", "range: [a, b]", 8, "has no order"),
        ("values: [x, y]", "values: []", 8, "values must have 1 to"),
        ("default: x", "default: z", 8, "the default is not among"),
        (
            "type: list of string",
            "type: string, default: x",
            6,
            "only attributes of the key",
        ),
        ("aliases: [see]", "aliases: [a]", 1, "a names two attributes"),
        ("aliases: [see]", "aliases: [to]", 7, "\"to\" is not a name"),
        ("note:", "\"9\":", 6, "\"9\" is not a name"),
        ("name: small", "name: [[[[[[[[[]]]]]]]]]", 1, "more than 8 levels"),
        ("name: small", "name: small\n---\nname: x", 2, ""),
        ("name: small", "name: \"small", 1, ""),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let error = Schema::parse_yaml(&SMALL.replace(from, to)).expect_err(to);
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.subject().starts_with("schema line "), "{error}");
        assert!(error.cause().contains(says), "{to}: {error}");
        if line > 0 && !says.is_empty() {
            assert_eq!(error.subject(), format!("schema line {line}"), "{to}: {error}");
        }
    }
    for text in [
        "",
        "# nothing",
        "[]",
        "x",
        "a: b: c",
        "\u{0}",
        "{",
        "key: {dataset: []}\nname: x\nattributes: {}",
    ] {
        assert!(Schema::parse_yaml(text).is_err(), "{text}");
    }
}

#[test]
fn limits_hold() {
    let many = |count: usize| {
        let lines: Vec<String> = (0..count).map(|at| format!("  a{at}: {{type: string}}\n")).collect();
        let attributes = lines.concat();
        Schema::parse_yaml(&format!("name: n\nkey: {{dataset: [a0]}}\nattributes:\n{attributes}"))
    };
    assert_eq!(many(128).unwrap().attributes().len(), 128);
    assert!(many(129).unwrap_err().cause().contains("more than 128 attributes"));
    let names: Vec<String> = (0..120_000).map(|at| format!("k{at:x}")).collect();
    let keyed = format!("name: n\nkey: {{dataset: [{}]}}\nattributes: {{}}\n", names.join(","));
    let error = Schema::parse_yaml(&keyed).unwrap_err();
    assert_eq!(error.cause(), "the key has more than 128 attributes");
    let huge = " ".repeat(crate::limits::SCHEMA_BYTES_MAX + 1);
    assert_eq!(Schema::parse_yaml(&huge).unwrap_err().code(), Code::TooLarge);
    let long = SMALL.replace("default: x", &format!("default: {}", "x".repeat(1025)));
    assert!(
        Schema::parse_yaml(&long)
            .unwrap_err()
            .cause()
            .contains("more than 1024 bytes")
    );
    assert!(is_name(&"n".repeat(64)) && !is_name(&"n".repeat(65)));
}

#[test]
fn mars_keys_of_different_fields_differ() {
    let schema = Schema::builtin("mars").unwrap();
    // Attributes that all fields have are first in each level, so that plain keys are unchanged.
    let names: Vec<&str> = schema.attributes().iter().map(|a| a.name.as_str()).collect();
    let [dataset, collocation, _] = schema.level_ends();
    assert_eq!(names[..5], ["class", "expver", "stream", "date", "time"]);
    assert_eq!(names[dataset..collocation], ["type", "levtype"]);
    assert_eq!(
        names[collocation..collocation + 4],
        ["step", "number", "levelist", "param"]
    );
    assert_eq!(schema.find("level"), schema.find("levelist"));
    assert_eq!(schema.find("member"), schema.find("number"));
}

#[test]
fn a_bad_retention_is_refused_with_its_line() {
    for (retention, line, cause) in [
        ("retention: forever", 2, "retention must be withdrawn"),
        ("retention: {released: 0}", 2, "released must be a number from 1"),
        ("retention:\n  for: soon", 3, "for must be a time of at most 49d"),
        ("retention: {for: 0s}", 2, "for must be a time"),
        ("retention: {for: 50d}", 2, "for must be a time"),
        ("retention: {}", 2, "retention must be withdrawn"),
        ("retention: {released_by: []}", 2, "names no requirement"),
        (
            "retention: {released_by: [a, -b]}",
            2,
            "the first must be a letter or digit",
        ),
        ("retention: {released_by: a}", 2, "released_by must be a list"),
        (
            "retention: {released: 1, released_by: [a]}",
            2,
            "retention must be withdrawn",
        ),
        ("retention_by_dataset:\n- {where: a=x}", 3, "needs the field retention"),
        (
            "retention_by_dataset:\n- {where: c=1, retention: withdrawn}",
            3,
            "c is not an attribute of the first level",
        ),
        (
            "retention_by_dataset:\n- {where: a, retention: withdrawn}",
            3,
            "where: InvalidSelector",
        ),
        (
            "retention_by_dataset:\n- {where: a=x, retention: no}",
            3,
            "retention must be withdrawn",
        ),
        ("retention: {for: 1h, released: 1}", 2, "retention must be withdrawn"),
    ] {
        let text = SMALL.replace("name: small", &format!("name: small\n{retention}"));
        let error = Schema::parse_yaml(&text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(error.subject(), format!("schema line {line}"), "{error}");
        assert!(error.cause().contains(cause), "{error}");
    }
}

#[test]
fn the_first_rule_that_matches_a_dataset_says_how_long_its_objects_stay() {
    let schema = Schema::parse_yaml(&(SMALL.to_owned() + RULES)).unwrap();
    let stays = |a: &str| {
        let mut record = Vec::new();
        let given = [("a", Given::Text(a)), ("c", Given::Integer(1))];
        schema.record(given, &mut record).unwrap();
        schema.retention_of(RecordRef::trusted(&record)).to_string()
    };
    assert_eq!(stays("x"), "10m");
    assert_eq!(stays("y"), "released_by:archive");
    assert_eq!(schema.default_retention().to_string(), "released_by:a/b,archive");
    assert_eq!(schema.default_retentions().count(), 4);
}

#[test]
fn until_it_is_archived_is_a_word_in_a_file_too() {
    let text = SMALL.to_owned() + "retention: archived\nretention_by_dataset: [{where: a=x, retention: archived}]\n";
    let schema = Schema::parse_yaml(&text).unwrap();
    assert!(
        schema
            .default_retentions()
            .all(|one| *one == Retention::until_archived())
    );
    assert_eq!(schema.default_retentions().count(), 2);
    assert_eq!(Schema::parse_yaml(&schema.to_yaml()).unwrap(), schema);
}
