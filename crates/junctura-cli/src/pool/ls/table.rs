//! Objects as a table: a column for each attribute of the key that is there, as wide as a page of the list needs.
//!
//! A list may be long: it is written page by page. A later page with other columns, or of another schema, starts a new table
//! with a heading. If objects of several schemas alternate, one table has the columns of all, and one with the schema.
//! Objects of an open schema may have names of attributes of their own: beyond some columns those are left out that few
//! objects of the page have.

use hashbrown::HashMap;
use junctura::{Result, Schema};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use junctura_terminal::visible::printable;

use super::shown::ListedObject;

/// Columns that are no attributes; their names could not be an attribute's.
const SCHEMA: &str = "<schema>";
const SIZE: &str = "<size>";
const PLACE: &str = "<place>";
const VERSION: &str = "<version>";
/// Longer values do not widen their column for all others.
const WIDTH_MAX: usize = 40;
/// Columns of attributes that the schema does not declare: as many as one object may have.
const UNDECLARED_MAX: usize = 64;

/// One object as names of columns and texts.
type Row<'a> = Vec<(&'a str, String)>;

/// A table that is being written.
pub(super) struct ListTable {
    long: bool,
    schema: Option<String>,
    columns: Vec<TableColumn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TableColumn {
    name: String,
    width: usize,
    right: bool,
}

impl ListTable {
    pub(super) fn new(long: bool) -> ListTable {
        ListTable {
            long,
            schema: None,
            columns: Vec::new(),
        }
    }

    /// Writes a page.
    pub(super) fn write(&mut self, page: &[ListedObject<'_>], out: &mut StandardOutput) -> Result<()> {
        let runs: Vec<_> = page.chunk_by(|a, b| a.schema_name() == b.schema_name()).collect();
        let mut names: Vec<&str> = runs
            .iter()
            .filter_map(|run| run.first())
            .map(ListedObject::schema_name)
            .collect();
        names.sort_unstable();
        names.dedup();
        if names.len() < runs.len() {
            return self.write_mixed(page, out);
        }
        for run in runs {
            let Some(first) = run.first() else { continue };
            let rows: Vec<Row<'_>> = run.iter().map(|entry| self.row(entry)).collect();
            let (needed, left_out) = columns(first.object.schema(), &rows);
            self.write_rows(first.schema_name(), needed, &rows, out)?;
            if left_out > 0 {
                writeln!(
                    out,
                    "(attributes of few objects are left out, {left_out} in number: --json has all)"
                )?;
            }
        }
        Ok(())
    }

    /// Writes objects of several schemas in their order.
    fn write_mixed(&mut self, page: &[ListedObject<'_>], out: &mut StandardOutput) -> Result<()> {
        let mut needed: Vec<TableColumn> = Vec::new();
        let mut by_schema: Vec<&ListedObject<'_>> = page.iter().collect();
        by_schema.sort_by_key(|entry| entry.schema_name());
        for run in by_schema.chunk_by(|a, b| a.schema_name() == b.schema_name()) {
            let rows: Vec<Row<'_>> = run.iter().map(|entry| self.row(entry)).collect();
            merge(&mut needed, columns(run[0].object.schema(), &rows).0);
        }
        let width = page.iter().map(|entry| entry.schema_name().len()).max().unwrap_or(0);
        let schema = TableColumn {
            name: SCHEMA.to_owned(),
            width: width.max("schema".len()),
            right: false,
        };
        needed.insert(0, schema);
        let with_schema = |entry| {
            let mut row = self.row(entry);
            row.push((SCHEMA, entry.schema_name().to_owned()));
            row
        };
        let rows: Vec<Row<'_>> = page.iter().map(with_schema).collect();
        self.write_rows(SCHEMA, needed, &rows, out)
    }

    fn write_rows(
        &mut self,
        schema: &str,
        needed: Vec<TableColumn>,
        rows: &[Row<'_>],
        out: &mut StandardOutput,
    ) -> Result<()> {
        let is_next = self.schema.as_deref().is_some_and(|before| before != schema);
        if self.begin(schema, needed) {
            if is_next {
                writeln!(out)?;
            }
            let heading: Vec<&str> = self
                .columns
                .iter()
                .map(|column| column.name.trim_matches(['<', '>']))
                .collect();
            out.heading(&line(&self.columns, &heading))?;
        }
        for row in rows {
            let text = |column: &TableColumn| {
                row.iter()
                    .find(|(name, _)| *name == column.name)
                    .map_or("", |(_, text)| text)
            };
            let cells: Vec<&str> = self.columns.iter().map(text).collect();
            writeln!(out, "{}", line(&self.columns, &cells))?;
        }
        Ok(())
    }

    fn row<'a>(&self, shown: &'a ListedObject<'_>) -> Row<'a> {
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

    /// Makes room for these columns; true when a heading is due.
    fn begin(&mut self, schema: &str, needed: Vec<TableColumn>) -> bool {
        let is_known = |needed: &TableColumn| self.columns.iter().any(|column| column.name == needed.name);
        if self.schema.as_deref() != Some(schema) || !needed.iter().all(is_known) {
            self.schema = Some(schema.to_owned());
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

/// The columns that some rows need: attributes in the order of the schema, then those it does not know, then the others. Also how many
/// attributes are left out.
fn columns(schema: &Schema, rows: &[Row<'_>]) -> (Vec<TableColumn>, usize) {
    // By name: how many rows have it, and the width.
    let mut found: HashMap<&str, (usize, usize)> = HashMap::new();
    for (name, text) in rows.iter().flatten() {
        let (rows, width) = found.entry(name).or_default();
        *rows += 1;
        *width = (*width).max(text.chars().count().min(WIDTH_MAX));
    }
    let is_declared = |name: &str| matches!(name, SIZE | PLACE | VERSION) || schema.find(name).is_some();
    let mut undeclared: Vec<(usize, &str)> = found
        .iter()
        .filter(|(name, _)| !is_declared(name))
        .map(|(name, (rows, _))| (*rows, *name))
        .collect();
    undeclared.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let left_out = undeclared.split_off(undeclared.len().min(UNDECLARED_MAX));
    for (_, name) in &left_out {
        found.remove(name);
    }
    let column = |(name, (_, width)): (&str, (usize, usize))| TableColumn {
        name: name.to_owned(),
        width: width.max(name.trim_matches(['<', '>']).len()),
        right: is_number(schema, name),
    };
    let mut columns: Vec<TableColumn> = found.into_iter().map(column).collect();
    let rank = |name: &str| match name {
        VERSION => usize::MAX,
        PLACE => usize::MAX - 1,
        SIZE => usize::MAX - 2,
        _ => schema.find(name).map_or(usize::MAX - 3, junctura_model::AttrId::index),
    };
    columns.sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
    (columns, left_out.len())
}

/// Adds the columns of another schema: attributes before the columns that are none.
fn merge(all: &mut Vec<TableColumn>, others: Vec<TableColumn>) {
    for other in others {
        if let Some(known) = all.iter_mut().find(|known| known.name == other.name) {
            known.width = known.width.max(other.width);
            known.right &= other.right;
        } else if other.name.starts_with('<') {
            all.push(other);
        } else {
            let at = all.iter().position(|known| known.name.starts_with('<'));
            all.insert(at.unwrap_or(all.len()), other);
        }
    }
}

fn is_number(schema: &Schema, name: &str) -> bool {
    let is_ordered = |id| {
        let kind = schema.attribute(id).kind;
        kind.scalar.is_ordered() && !kind.list
    };
    name == SIZE || schema.find(name).is_some_and(is_ordered)
}

fn line(columns: &[TableColumn], cells: &[&str]) -> String {
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
        let (columns, left_out) = columns(&schema, &rows);
        assert_eq!(left_out, 0);
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["class", "step", "param", SIZE]);
        assert_eq!(line(&columns, &["od", "6", "t", "1 B"]), "od        6  t       1 B");
    }

    #[test]
    fn a_heading_comes_where_columns_or_schemas_change() {
        let (mars, free) = (Schema::builtin("mars").unwrap(), Schema::builtin("free").unwrap());
        let mut table = ListTable::new(false);
        let of = |schema: &Schema, name, text| columns(schema, &[row(&[(name, text)])]).0;
        assert!(table.begin(mars.name(), of(&mars, "step", "6")));
        assert!(!table.begin(mars.name(), of(&mars, "step", "0-240")));
        assert_eq!(table.columns[0].width, 5);
        assert!(table.begin(mars.name(), of(&mars, "number", "6")));
        assert!(table.begin(free.name(), of(&free, "name", "x")));
    }

    #[test]
    fn columns_of_two_schemas_are_merged() {
        let (mars, free) = (Schema::builtin("mars").unwrap(), Schema::builtin("free").unwrap());
        let mut all = columns(&mars, &[row(&[("step", "6"), ("param", "t"), (SIZE, "1 B")])]).0;
        merge(
            &mut all,
            columns(&free, &[row(&[("name", "x"), ("step", "long"), (SIZE, "100 B")])]).0,
        );
        let shown: Vec<_> = all
            .iter()
            .map(|one| (one.name.as_str(), one.width, one.right))
            .collect();
        assert_eq!(
            shown,
            [
                ("step", 4, false),
                ("param", 5, false),
                ("name", 4, false),
                (SIZE, 5, true)
            ]
        );
    }

    #[test]
    fn attributes_that_few_objects_have_are_left_out() {
        let free = Schema::builtin("free").unwrap();
        let names: Vec<String> = (0..1000).map(|number| format!("own{number:04}")).collect();
        let rows: Vec<Row<'_>> = names
            .iter()
            .map(|name| row(&[("name", "x"), (name, "1"), ("common", "2"), (SIZE, "1 B")]))
            .collect();
        let (columns, left_out) = columns(&free, &rows);
        assert_eq!((columns.len(), left_out), (UNDECLARED_MAX + 2, 1001 - UNDECLARED_MAX));
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        assert!(has("name") && has("common") && has("own0000") && has(SIZE) && !has("own0999"));
    }
}
