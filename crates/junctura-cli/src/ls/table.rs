//! Objects as a table: a column for each attribute of the key that is there, as wide as a page of the list needs.
//!
//! A list may be long: it is written page by page. Where a later page has other columns, or is of another schema, the table
//! begins anew with a heading.

use junctura::{Result, Schema};

use super::shown::Shown;
use crate::output::Out;
use crate::size;

/// Columns that are no attributes; their names could not be an attribute's.
const SIZE: &str = "<size>";
const PLACE: &str = "<place>";
const VERSION: &str = "<version>";
/// Longer values do not widen their column for all others.
const WIDTH_MAX: usize = 40;

/// What one object shows: names of columns and texts.
type Row<'a> = Vec<(&'a str, String)>;

/// A table that is being written.
pub(super) struct Table {
    long: bool,
    schema: Option<String>,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    width: usize,
    right: bool,
}

impl Table {
    pub(super) fn new(long: bool) -> Table {
        Table {
            long,
            schema: None,
            columns: Vec::new(),
        }
    }

    /// Writes a page.
    pub(super) fn write(&mut self, page: &[Shown<'_>], out: &mut Out) -> Result<()> {
        for run in page.chunk_by(|a, b| a.object.schema().name() == b.object.schema().name()) {
            let rows: Vec<Row<'_>> = run.iter().map(|entry| self.row(entry)).collect();
            if let Some(first) = run.first()
                && self.begin(first.object.schema(), &rows)
            {
                let heading: Vec<&str> = self
                    .columns
                    .iter()
                    .map(|column| column.name.trim_matches(['<', '>']))
                    .collect();
                out.heading(&line(&self.columns, &heading))?;
            }
            for row in &rows {
                let text = |column: &Column| {
                    row.iter()
                        .find(|(name, _)| *name == column.name)
                        .map_or("", |(_, text)| text)
                };
                let cells: Vec<&str> = self.columns.iter().map(text).collect();
                writeln!(out, "{}", line(&self.columns, &cells))?;
            }
        }
        Ok(())
    }

    fn row<'a>(&self, shown: &'a Shown<'_>) -> Row<'a> {
        let schema = shown.object.schema();
        let is_key = |name: &str| schema.find(name).is_some_and(|id| id.index() < schema.key_len());
        let attributes = shown.object.attributes().filter(|(name, _)| self.long || is_key(name));
        let mut row: Row<'_> = attributes.map(|(name, text)| (name, printable(text))).collect();
        row.push((SIZE, size::bytes(shown.bytes)));
        if self.long {
            row.push((PLACE, shown.place.to_string()));
            row.push((VERSION, shown.since.to_string()));
        }
        row
    }

    /// Makes room for these rows; true when a heading is due.
    fn begin(&mut self, schema: &Schema, rows: &[Row<'_>]) -> bool {
        let needed = columns(schema, rows);
        let is_known = |needed: &Column| self.columns.iter().any(|column| column.name == needed.name);
        if self.schema.as_deref() != Some(schema.name()) || !needed.iter().all(is_known) {
            self.schema = Some(schema.name().to_owned());
            self.columns = needed;
            return true;
        }
        for column in &mut self.columns {
            let width = needed
                .iter()
                .find(|needed| needed.name == column.name)
                .map_or(0, |needed| needed.width);
            column.width = column.width.max(width);
        }
        false
    }
}

/// The columns that some rows need: attributes in the order of the schema, then those it does not know, then the others.
fn columns(schema: &Schema, rows: &[Row<'_>]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (name, text) in rows.iter().flatten() {
        let width = text.chars().count().min(WIDTH_MAX);
        if let Some(column) = columns.iter_mut().find(|column| column.name == *name) {
            column.width = column.width.max(width);
        } else {
            let width = width.max(name.trim_matches(['<', '>']).len());
            columns.push(Column {
                name: (*name).to_owned(),
                width,
                right: is_number(schema, name),
            });
        }
    }
    let rank = |name: &str| match name {
        VERSION => usize::MAX,
        PLACE => usize::MAX - 1,
        SIZE => usize::MAX - 2,
        _ => schema.find(name).map_or(usize::MAX - 3, junctura_model::AttrId::index),
    };
    columns.sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
    columns
}

fn is_number(schema: &Schema, name: &str) -> bool {
    let is_ordered = |id| {
        let kind = schema.attribute(id).kind;
        kind.scalar.is_ordered() && !kind.list
    };
    name == SIZE || schema.find(name).is_some_and(is_ordered)
}

fn line(columns: &[Column], cells: &[&str]) -> String {
    let mut line = String::new();
    for (column, cell) in columns.iter().zip(cells) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        let room = " ".repeat(column.width.saturating_sub(cell.chars().count()));
        let (before, after) = if column.right {
            (room.as_str(), "")
        } else {
            ("", room.as_str())
        };
        line.extend([before, cell, after]);
    }
    line.truncate(line.trim_end().len());
    line
}

/// A value cannot draw on the terminal.
fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .map(|letter| if letter.is_control() { '\u{fffd}' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(cells: &[(&'a str, &str)]) -> Row<'a> {
        cells.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
    }

    #[test]
    fn columns_stand_in_the_order_of_the_schema_and_are_as_wide_as_needed() {
        let schema = Schema::builtin("mars").unwrap();
        let rows = [
            row(&[("step", "6"), ("class", "od"), (SIZE, "1 B")]),
            row(&[("param", "msl"), (SIZE, "17 B")]),
        ];
        let columns = columns(&schema, &rows);
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["class", "step", "param", SIZE]);
        assert_eq!(line(&columns, &["od", "6", "t", "1 B"]), "od        6  t       1 B");
    }

    #[test]
    fn a_heading_comes_where_columns_or_schemas_change() {
        let (mars, free) = (Schema::builtin("mars").unwrap(), Schema::builtin("free").unwrap());
        let mut table = Table::new(false);
        assert!(table.begin(&mars, &[row(&[("step", "6")])]));
        assert!(!table.begin(&mars, &[row(&[("step", "0-240")])]));
        assert_eq!(table.columns[0].width, 5);
        assert!(table.begin(&mars, &[row(&[("number", "6")])]));
        assert!(table.begin(&free, &[row(&[("name", "x")])]));
    }

    #[test]
    fn a_value_cannot_draw_on_the_terminal() {
        assert_eq!(printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }
}
