//! Rows of a segment that cannot be read: only queries that may match one of these rows fail.
//!
//! The checkpoint has the number of the rows and their datasets.

use std::collections::{BTreeMap, HashSet};

use junctura_model::selector::{AttributeQuestion, SelectorQuestion};
use junctura_model::{AttrId, Code, Error, Result, Schema};
use serde::{Deserialize, Serialize};

use crate::catalogue::table::{PassingValues, RowColumns, RowTable, TextColumn, passing, select_keys};

/// The datasets of a segment with more datasets are not recorded.
const DATASETS_MAX: usize = 64;
/// Nor where their names are longer, all together.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct UnreadableRows {
    pub(crate) error: Error,
    pub(crate) rows: usize,
    /// No row has a higher commit number.
    pub(crate) last_commit: u64,
    /// Whether the file itself cannot be opened, and may become available again.
    pub(crate) is_unopened: bool,
    pub(crate) datasets: Option<KnownUnreadable>,
}

impl UnreadableRows {
    /// # Errors
    /// `Corrupt` when one of its rows may be asked for.
    pub(crate) fn ask(&self, question: &SelectorQuestion<'_>) -> Result<()> {
        match &self.datasets {
            Some(datasets) if select_keys(datasets, question, datasets.columns.len())?.is_empty() => Ok(()),
            _ => Err(self.error.clone()),
        }
    }
}

/// Returns the error for a missing file of rows.
pub(crate) fn gone(error: &Error) -> Error {
    match error.code() {
        Code::NotFound => {
            let cause = "it is missing, and the newest checkpoint names it: its rows are lost";
            Error::new(Code::Corrupt, error.subject(), cause)
        }
        _ => error.clone(),
    }
}

/// The datasets of some rows, as a checkpoint has them: the values of the first level of their keys, by the names of attributes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct RowDatasets(Vec<BTreeMap<String, String>>);

/// The same, to be asked.
#[derive(Debug)]
pub(crate) struct KnownUnreadable {
    /// One for each attribute, a row for each dataset.
    columns: Vec<TextColumn>,
    rows: usize,
}

impl RowDatasets {
    /// Those of a table, where they are few.
    pub(crate) fn of(table: &RowTable, schema: &Schema) -> Option<Self> {
        let ids = (0..schema.level_ends()[0]).map(|at| AttrId(at as u8));
        let columns: Vec<(AttrId, Option<&TextColumn>)> = ids.map(|id| (id, table.column(id, ""))).collect();
        let (mut seen, mut all, mut bytes) = (HashSet::new(), Vec::new(), 0);
        let numbers = |row| {
            columns
                .iter()
                .map(move |(_, column)| column.map_or(0, |column| column.number(row)))
        };
        let mut last = Vec::new();
        for row in 0..table.len() as u32 {
            // Those of one dataset follow each other, most of the time.
            if row > 0 && numbers(row).eq(last.iter().copied()) {
                continue;
            }
            last.clear();
            last.extend(numbers(row));
            if !seen.insert(last.clone()) {
                continue;
            }
            let values = columns
                .iter()
                .filter_map(|(id, column)| Some((&schema.attribute(*id).name, column.as_ref()?.text(row)?)));
            let values: BTreeMap<String, String> = values.map(|(name, text)| (name.clone(), text.to_owned())).collect();
            bytes += values.iter().map(|(name, text)| name.len() + text.len()).sum::<usize>();
            all.push(values);
            if all.len() > DATASETS_MAX || bytes > TEXT_BYTES_MAX {
                return None;
            }
        }
        Some(Self(all))
    }

    /// None where they are none of this schema.
    pub(crate) fn known(&self, schema: &Schema) -> Option<KnownUnreadable> {
        let ids = (0..schema.level_ends()[0]).map(|at| AttrId(at as u8));
        let mut columns: Vec<TextColumn> = ids.map(|id| TextColumn::new(id, "")).collect();
        for (row, values) in self.0.iter().enumerate() {
            for (name, text) in values {
                let column = columns.get_mut(schema.find(name)?.index())?;
                let number = column.value_number(text);
                column.set(row as u32, number);
            }
        }
        let rows = self.0.len();
        (rows > 0).then_some(KnownUnreadable { columns, rows })
    }
}

impl RowColumns for KnownUnreadable {
    fn rows(&self) -> usize {
        self.rows
    }

    fn passing(&self, asked: AttributeQuestion<'_>) -> Result<Option<PassingValues>> {
        let column = self.columns.get(asked.attribute().index());
        Ok(column.map(|column| passing(column, asked)))
    }

    fn with_numbers(&self, asked: AttributeQuestion<'_>, take: &mut dyn FnMut(&TextColumn)) -> Result<()> {
        if let Some(column) = self.columns.get(asked.attribute().index()) {
            take(column);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use junctura_model::SelectorSet;
    use std::sync::Arc;

    use super::*;
    use crate::catalogue::table::ObjectLocation;

    const SCHEMA: &str = "
name: cube
key:
  dataset: [run, \"part?\"]
  element: [step]
attributes:
  run: {type: string}
  part: {type: integer}
  step: {type: integer}
";

    fn table(schema: &Schema, rows: &[&str]) -> RowTable {
        let mut table = RowTable::default();
        for row in rows {
            let pairs = row.split(',').filter_map(|pair| pair.split_once('='));
            let mut record = Vec::new();
            let given = pairs.map(|(name, value)| (name, junctura_model::Given::Text(value)));
            schema.record(given, &mut record).unwrap();
            let place = ObjectLocation {
                file: table.file_number(&"file".into()),
                offset: 0,
                length: 0,
                checksum: 0,
                packed: None,
            };
            let record = junctura_model::RecordRef::trusted(&record);
            table.push(record, place, None).unwrap();
        }
        table
    }

    #[test]
    fn who_asks_for_other_datasets_is_not_told() {
        let schema = Arc::new(Schema::parse_yaml(SCHEMA).unwrap());
        let rows = [
            "run=a,part=1,step=0",
            "run=a,part=1,step=6",
            "run=b,step=0",
            "run=a,part=1,step=9",
        ];
        let datasets = RowDatasets::of(&table(&schema, &rows), &schema).unwrap();
        assert_eq!(datasets.0.len(), 2);
        let text = serde_json::to_string(&datasets).unwrap();
        let again: RowDatasets = serde_json::from_str(&text).unwrap();
        let lost = UnreadableRows {
            error: Error::new(Code::Corrupt, "segments/one", "it is gone"),
            rows: 4,
            last_commit: 1,
            is_unopened: true,
            datasets: again.known(&schema),
        };
        for (selector, is_told) in [
            ("", true),
            ("run=a", true),
            ("run=c", false),
            ("run=a/c,step=99", true),
            ("run=b,part=1", false),
            ("run=b,not part=1", true),
            ("not(run=a/b)", false),
            ("not(run=a)", true),
            ("not(run=a/b,step=0)", true),
            ("part>1", false),
            ("step=99", true),
            ("run=c or step=1", true),
        ] {
            let set = SelectorSet::parse(selector, &[Arc::clone(&schema)]).unwrap();
            let told = lost.ask(&set.of(0).unwrap().question());
            assert_eq!(told.is_err(), is_told, "{selector}");
        }
    }

    #[test]
    fn what_is_of_no_such_schema_or_too_much_says_nothing() {
        let schema = Schema::parse_yaml(SCHEMA).unwrap();
        for text in ["[]", r#"[{"step": "0"}]"#, r#"[{"run": "a"}, {"other": "1"}]"#] {
            let datasets: RowDatasets = serde_json::from_str(text).unwrap();
            assert!(datasets.known(&schema).is_none(), "{text}");
        }
        let rows: Vec<String> = (0..=DATASETS_MAX)
            .map(|part| format!("run=a,part={part},step=0"))
            .collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        assert!(RowDatasets::of(&table(&schema, &rows), &schema).is_none());
        assert!(RowDatasets::of(&table(&schema, &rows[1..]), &schema).is_some());
        let long: Vec<String> = (0..9).map(|run| format!("run={run:01000},step=0")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert!(RowDatasets::of(&table(&schema, &long), &schema).is_none());
    }
}
