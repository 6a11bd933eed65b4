//! Selects the schema of a store for a field of FDB.

use std::sync::Arc;

use junctura::{Code, Error, Given, Result, Schema};
use junctura_model::Record;
use junctura_model::schema::fdb_value;

use super::fields::FdbField;

/// Returns the first schema that accepts a field, in the levels of FDB's attributes, and the field's record there.
///
/// # Errors
/// `SchemaMismatch` or `TypeMismatch` if none does.
pub(super) fn place(field: &FdbField, schemas: &[Arc<Schema>]) -> Result<(usize, Record)> {
    let mut refused = None;
    for (at, schema) in schemas
        .iter()
        .enumerate()
        .filter(|(_, schema)| has_levels(field, schema))
    {
        match record(field, schema) {
            Ok(record) => return Ok((at, record)),
            // More general rules are later: the error of the last one is the most helpful.
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.map_or_else(
        || {
            Error::new(
                Code::SchemaMismatch,
                field.name(),
                "no schema of the store has these attributes in these levels",
            )
        },
        |error| {
            Error::new(
                error.code(),
                field.name(),
                format!("{}: {}", error.subject(), error.cause()),
            )
        },
    ))
}

/// Whether the schema has all attributes of the field, each in the same level of the key.
fn has_levels(field: &FdbField, schema: &Schema) -> bool {
    let level_of = |name: &str| schema.find(name).and_then(|id| schema.attribute(id).level);
    field.attributes().all(|(level, name, _)| level_of(name) == Some(level))
}

fn record(field: &FdbField, schema: &Schema) -> Result<Record> {
    let value = |name: &str, text| match schema.find(name) {
        Some(id) => fdb_value(schema.attribute(id).kind.scalar, text),
        None => text.into(),
    };
    let values: Vec<_> = field
        .attributes()
        .map(|(_, name, text)| (name, value(name, text)))
        .collect();
    let mut record = Vec::new();
    schema.record(
        values.iter().map(|(name, text)| (*name, Given::Text(text))),
        &mut record,
    )?;
    Ok(Record::trusted(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "\
        step: Step; levelist: Double; number: Integer;
        [ class, stream=enfo [ type=tu, levtype [ step, number, param ]] [ type, levtype [ step, levelist?, param ]]]
        [ class, stream, number? [ type [ step, param ]]]";

    fn field(key: [&[(&str, &str)]; 3]) -> FdbField {
        let key = key.map(|level| {
            level
                .iter()
                .map(|(name, text)| (*name, *text))
                .collect::<serde_json::Value>()
        });
        let field = serde_json::json!({"key": key, "scheme": "", "file": "/data", "offset": 0, "length": 3});
        serde_json::from_value(field).unwrap()
    }

    fn placed(key: [&[(&str, &str)]; 3]) -> std::result::Result<(usize, String), String> {
        let schemas: Vec<Arc<Schema>> = Schema::parse_fdb(RULES, "x")
            .unwrap()
            .into_iter()
            .map(Arc::new)
            .collect();
        let (at, record) = place(&field(key), &schemas).map_err(|error| error.to_string())?;
        Ok((at, schemas[at].key_text(record.as_ref())))
    }

    #[test]
    fn the_first_rule_that_takes_it_in_its_levels() {
        let enfo: &[_] = &[("class", "od"), ("stream", "enfo")];
        let levels: &[_] = &[("levtype", "pl"), ("type", "pf")];
        assert_eq!(
            placed([
                enfo,
                levels,
                &[("levelist", "1e-05"), ("param", "130"), ("step", "0-1h30m")]
            ]),
            Ok((
                1,
                "{class=od,stream=enfo}{type=pf,levtype=pl}{step=0m-90m,levelist=0.00001,param=130}".to_owned()
            ))
        );
        assert_eq!(
            placed([enfo, levels, &[("levelist", ""), ("param", "130"), ("step", "6")]])
                .unwrap()
                .0,
            1
        );
        let tube: &[_] = &[("levtype", "pl"), ("type", "tu")];
        assert_eq!(
            placed([enfo, tube, &[("number", "1"), ("param", "130"), ("step", "6")]])
                .unwrap()
                .0,
            0
        );
        assert_eq!(
            placed([enfo, &[("type", "pf")], &[("param", "130"), ("step", "6")]])
                .unwrap()
                .0,
            2
        );
    }

    #[test]
    fn what_no_rule_takes_is_named() {
        let oper: &[_] = &[("class", "od"), ("stream", "oper")];
        let error = placed([
            oper,
            &[("levtype", "pl"), ("type", "pf")],
            &[("param", "130"), ("step", "6")],
        ])
        .unwrap_err();
        assert!(
            error.contains("{class=od,stream=oper}{levtype=pl,type=pf}{param=130,step=6}"),
            "{error}"
        );
        let error = placed([oper, &[("type", "pf")], &[("param", "130"), ("step", "soon")]]).unwrap_err();
        assert!(error.contains("step: \"soon\" is no step"), "{error}");
        let error = placed([
            oper,
            &[("type", "pf"), ("origin", "x")],
            &[("param", "1"), ("step", "6")],
        ])
        .unwrap_err();
        assert!(error.contains("no schema of the store has these attributes"), "{error}");
    }
}
