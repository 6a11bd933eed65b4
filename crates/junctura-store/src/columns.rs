//! A listing as columns, for those who look at a million objects at once: the columns that the files of a checkpoint have.
//!
//! Each distinct value is looked at once, and rows are numbers into the list of values: a million of them are a matter of
//! milliseconds, where a million objects are seconds.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Field};
use hashbrown::HashMap;
use junctura_model::{AttrId, Code, Error, Result, Type};

use crate::listing::Listing;
use crate::segment::{self, own_arrays, own_fields};
use crate::snapshot::attributes;
use crate::table::{Column, Table};

/// Says which schema an object is of, where they are of several.
const SCHEMA: &str = "_schema";

/// One attribute in all tables.
struct Attribute<'a> {
    name: String,
    kind: Type,
    /// Where each part of the listing has it.
    columns: Vec<Option<&'a Column>>,
}

impl Listing {
    /// The objects as one batch of Arrow, a row for each in the order of the listing. It has a column for each attribute that one of
    /// them has, those of the key first, and the store's own behind them, with the names and types of the files of a
    /// [checkpoint](crate::Store::checkpoint): texts are dictionaries. Where the objects are of several schemas, `_schema` names that
    /// of each, and an attribute that the schemas disagree about is text.
    ///
    /// # Errors
    /// `Corrupt` when values are not what their types say; `LimitExceeded` for more than 4,294,967,295 objects.
    pub fn to_arrow(&self) -> Result<RecordBatch> {
        let count = self.count()?;
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for attribute in self.attributes() {
            let mut scratch = Table::default();
            let column = self.joined(&attribute, &mut scratch)?;
            if column.values_len() > 0 {
                let array = segment::array(column, attribute.kind, 0..count)?;
                fields.push(Field::new(attribute.name, array.data_type().clone(), true));
                arrays.push(array);
            }
        }
        if self
            .parts()
            .any(|(index, ..)| Some(index) != self.parts().next().map(|(first, ..)| first))
        {
            let array = self.schemas_named();
            fields.push(Field::new(SCHEMA, array.data_type().clone(), false));
            arrays.push(array);
        }
        let rows = self
            .parts()
            .flat_map(|(_, table, rows)| rows.iter().map(move |&row| (table, row)));
        let with_packed = rows.clone().any(|(table, row)| table.place(row).packed.is_some());
        fields.extend(own_fields(with_packed));
        arrays.extend(own_arrays(&rows, self.files(), with_packed));
        RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), arrays).map_err(|error| unfit(&error))
    }

    /// One attribute of all objects, by its name (`@name` where it is undeclared): its distinct values, in their canonical texts and in the
    /// order in which they are met, and for each object which of them it has; -1: none.
    ///
    /// # Errors
    /// `LimitExceeded` for more than 4,294,967,295 objects.
    pub fn column(&self, name: &str) -> Result<(Vec<String>, Vec<i32>)> {
        let count = self.count()?;
        let attributes = self.attributes();
        let Some(attribute) = attributes.iter().find(|attribute| attribute.name == name) else {
            return Ok((Vec::new(), vec![-1; count as usize]));
        };
        let mut scratch = Table::default();
        let column = self.joined(attribute, &mut scratch)?;
        let values = column.values().map(str::to_owned).collect();
        Ok((values, (0..count).map(|row| column.number(row) as i32 - 1).collect()))
    }

    fn count(&self) -> Result<u32> {
        u32::try_from(self.len()).map_err(|_| {
            let cause = format!("a table has no more than {} rows", u32::MAX);
            Error::new(Code::LimitExceeded, format!("{} objects", self.len()), cause)
        })
    }

    fn attributes(&self) -> Vec<Attribute<'_>> {
        let mut found: Vec<Attribute<'_>> = Vec::new();
        let parts = self.parts().count();
        for (index, schema) in self.snapshot().store().schemas().iter().enumerate() {
            let tables: Vec<&Table> = self
                .parts()
                .filter(|(of, ..)| *of == index)
                .map(|(_, table, _)| table)
                .collect();
            if tables.is_empty() {
                continue;
            }
            for (id, name) in attributes(schema, &tables) {
                let (name_there, kind) = match id {
                    AttrId::OPEN => (format!("@{name}"), Type::String),
                    id => (name.to_owned(), segment::type_of(id, schema)),
                };
                let known = found.iter().position(|attribute| attribute.name == name_there);
                let at = known.unwrap_or(found.len());
                if known.is_none() {
                    let columns = vec![None; parts];
                    let name = name_there;
                    found.push(Attribute { name, kind, columns });
                } else if found[at].kind != kind {
                    found[at].kind = Type::String;
                }
                for (column, (of, table, _)) in found[at].columns.iter_mut().zip(self.parts()) {
                    if of == index {
                        *column = table.column(id, name);
                    }
                }
            }
        }
        found
    }

    /// The values of all objects in one column.
    fn joined<'t>(&self, attribute: &Attribute<'_>, scratch: &'t mut Table) -> Result<&'t Column> {
        let joined = scratch.column_mut(AttrId::OPEN, "")?;
        let mut first = 0;
        for (column, (_, _, rows)) in attribute.columns.iter().zip(self.parts()) {
            if let Some(column) = column {
                // What stands for each of its values, from when one is seen.
                let mut numbers = vec![0; column.values_len() + 1];
                for (at, &row) in (first..).zip(rows) {
                    let number = column.number(row) as usize;
                    if numbers[number] == 0
                        && let Some(text) = column.text(row)
                    {
                        numbers[number] = joined.value_number(text);
                    }
                    if numbers[number] > 0 {
                        joined.set(at, numbers[number]);
                    }
                }
            }
            first += rows.len() as u32;
        }
        Ok(joined)
    }

    fn schemas_named(&self) -> ArrayRef {
        let schemas = self.snapshot().store().schemas();
        let numbers = self
            .parts()
            .flat_map(|(index, _, rows)| rows.iter().map(move |_| index as i32));
        let names: StringArray = schemas.iter().map(|schema| Some(schema.name())).collect();
        Arc::new(DictionaryArray::new(
            Int32Array::from_iter_values(numbers),
            Arc::new(names),
        ))
    }

    /// The file of each.
    fn files(&self) -> DictionaryArray<Int32Type> {
        let mut names: HashMap<&str, i32> = HashMap::new();
        let mut all = Vec::new();
        let mut numbers = Vec::with_capacity(self.len());
        for (_, table, rows) in self.parts() {
            let mut known = vec![None; table.files().len()];
            for &row in rows {
                let file = table.place(row).file as usize;
                numbers.push(*known[file].get_or_insert_with(|| {
                    *names.entry(&*table.files()[file]).or_insert_with(|| {
                        all.push(Some(&*table.files()[file]));
                        all.len() as i32 - 1
                    })
                }));
            }
        }
        let names: StringArray = all.into_iter().collect();
        DictionaryArray::new(Int32Array::from(numbers), Arc::new(names))
    }
}

fn unfit(error: &ArrowError) -> Error {
    Error::new(Code::Corrupt, "listing", error.to_string())
}
