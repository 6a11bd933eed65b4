//! Objects as JSON, for scripts: numbers as numbers, everything else as its canonical text.

use junctura::Schema;
use junctura_model::{Kind, Type, list_items};
use serde_json::{Map, Value};

/// The attributes of an object, by name.
pub(crate) fn attributes<'a>(schema: &Schema, attributes: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let typed = attributes.map(|(name, text)| {
        let kind = schema.find(name).map(|id| schema.attribute(id).kind);
        (name.to_owned(), value(kind, text))
    });
    Value::Object(typed.collect::<Map<_, _>>())
}

fn value(kind: Option<Kind>, text: &str) -> Value {
    match kind {
        Some(Kind { scalar, list: true }) => list_items(text).map(|item| one(scalar, &item)).collect(),
        Some(Kind { scalar, list: false }) => one(scalar, text),
        None => text.into(),
    }
}

fn one(scalar: Type, text: &str) -> Value {
    let number = match scalar {
        Type::Integer => text.parse::<i64>().map(Value::from).ok(),
        // Decimals with more digits than a double are exact in the key.
        Type::Decimal | Type::Float => text
            .parse::<i64>()
            .map(Value::from)
            .or_else(|_| text.parse::<f64>().map(Value::from))
            .ok(),
        Type::Bool => text.parse::<bool>().map(Value::from).ok(),
        _ => None,
    };
    number.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_and_texts_are_texts() {
        let schema = Schema::builtin("mars").unwrap();
        let given = [
            ("expver", "0001"),
            ("levelist", "0.5"),
            ("number", "12"),
            ("tags", "a/\"b/c\""),
            ("shape", "2/3"),
        ];
        let expected = serde_json::json!({
            "expver": "0001", "levelist": 0.5, "number": 12, "tags": ["a", "b/c"], "shape": [2, 3]
        });
        assert_eq!(attributes(&schema, given.into_iter()), expected);
    }
}
