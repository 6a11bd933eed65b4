//! Keys against the vectors of an independent implementation, where its folder is at hand, and against our own, always.

#![allow(
    clippy::disallowed_methods,
    reason = "the vectors are files; the crate itself stays pure"
)]
#![allow(clippy::format_collect, reason = "hex of a few bytes")]

use std::path::{Path, PathBuf};

use junctura_model::{Given, RecordRef, Result, Schema};
use serde_json::Value;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a user gave, out of JSON; `items` are those of a list.
fn given<'a>(value: &'a Value, items: &'a [Given<'a>]) -> Given<'a> {
    match value {
        Value::String(text) => Given::Text(text),
        Value::Bool(truth) => Given::Bool(*truth),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| Given::Float(number.as_f64().unwrap()), Given::Integer),
        Value::Array(_) => Given::List(items),
        other => panic!("{other} is no value"),
    }
}

fn record(schema: &Schema, attributes: &Value, out: &mut Vec<u8>) -> Result<()> {
    let attributes = attributes.as_object().unwrap();
    let lists: Vec<Vec<Given<'_>>> = attributes
        .values()
        .map(|value| {
            value
                .as_array()
                .map_or_else(Vec::new, |items| items.iter().map(|item| given(item, &[])).collect())
        })
        .collect();
    let all = attributes
        .iter()
        .zip(&lists)
        .map(|((name, value), items)| (name.as_str(), given(value, items)));
    schema.record(all, out)
}

/// The key's text, or the name of the error; proves the record and reads the key back on the way.
fn key(schema: &Schema, attributes: &Value) -> std::result::Result<String, String> {
    let mut bytes = Vec::new();
    record(schema, attributes, &mut bytes).map_err(|error| {
        assert!(bytes.is_empty(), "an error leaves nothing behind");
        error.code().name().to_owned()
    })?;
    schema
        .check(&bytes)
        .unwrap_or_else(|error| panic!("{attributes}: {error}"));
    let mut text = String::new();
    schema.key_of(RecordRef::trusted(&bytes), &mut text);

    let again = schema.parse_key(&text).unwrap();
    assert_eq!(
        again.as_ref().as_bytes(),
        RecordRef::trusted(&bytes).key_bytes(schema.key_len()),
        "{text}"
    );
    Ok(text)
}

#[test]
fn the_independent_vectors() {
    let folder = workspace().join("../shared/vectors/model");
    let (Ok(schema), Ok(cases)) = (
        std::fs::read_to_string(folder.join("schema.yaml")),
        std::fs::read_to_string(folder.join("keys.json")),
    ) else {
        println!("skipped: no vectors in {}", folder.display());
        return;
    };
    let schema = Schema::parse_yaml(&schema).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&cases).unwrap();
    // Steps before the base time became values after these vectors were written (WMO regulation 92.6.3).
    let is_before = |case: &&Value| {
        case["attributes"]["step"]
            .as_str()
            .is_some_and(|step| step.starts_with('-'))
    };
    for case in cases.iter().filter(|case| !is_before(case)) {
        let expected = match &case["key"] {
            Value::String(text) => Ok(text.clone()),
            error => Err(error["error"].as_str().unwrap().to_owned()),
        };
        assert_eq!(key(&schema, &case["attributes"]), expected, "{}", case["attributes"]);
    }
    println!("{} keys", cases.len());
}

#[test]
fn our_own_vectors() {
    let path = workspace().join("docs/formats/key-vectors.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut count = 0;
    for set in vectors["sets"].as_array().unwrap() {
        let schema = match &set["schema"] {
            Value::String(name) => Schema::builtin(name).unwrap(),
            lines => {
                let lines: Vec<&str> = lines
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|line| line.as_str().unwrap())
                    .collect();
                Schema::parse_yaml(&lines.join("\n")).unwrap().into()
            }
        };
        for case in set["cases"].as_array().unwrap() {
            check_case(&schema, case);
            count += 1;
        }
    }
    assert!(count >= 60, "only {count} cases");
}

fn check_case(schema: &Schema, case: &Value) {
    let attributes = &case["attributes"];
    let text = key(schema, attributes);
    if let Some(error) = case["error"].as_str() {
        return assert_eq!(text, Err(error.to_owned()), "{attributes}");
    }
    let text = text.unwrap();
    assert_eq!(text, case["key"].as_str().unwrap());
    assert_eq!(
        schema.key_hash(&text).to_string(),
        case["hash"].as_str().unwrap(),
        "{text}"
    );
    if let Some(expected) = case["record"].as_str() {
        let mut bytes = Vec::new();
        record(schema, attributes, &mut bytes).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{text}");
    }
}
