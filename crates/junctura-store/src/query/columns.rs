//! A listing as columns, for programs that process millions of objects at once: the columns of the files of a
//! checkpoint.
//!
//! Each distinct value is processed once, and rows are indices into the list of values: a million objects take
//! milliseconds instead of seconds.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Field};
use hashbrown::HashMap;
use junctura_model::{AttrId, Code, Error, Result, Type};

use crate::catalogue::segment::{self, own_arrays, own_fields};
use crate::catalogue::table::{RowTable, TextColumn};
use crate::query::listing::Listing;
use crate::query::snapshot::attributes;

/// The column with the schema of each object, if there are several.
const SCHEMA: &str = "_schema";

/// Maximum number of values of undeclared attributes in a batch, including missing ones: four bytes each.
pub(crate) const OPEN_VALUES_MAX: u64 = if cfg!(test) { 1 << 16 } else { 1 << 30 };

/// The index of a missing value in a column.
const NONE: i32 = -1;

/// One attribute in all tables.
struct AttributeColumns<'a> {
    name: String,
    kind: Type,
    /// The parts of the listing that have it, and the column in each.
    columns: Vec<(usize, &'a TextColumn)>,
}

impl Listing {
    /// Returns the objects as one Arrow batch, one row for each object in the order of the listing. It has a column for
    /// each attribute that any object has, key attributes first, and the store's own columns last, with the names and
    /// types of the files of a [checkpoint](crate::Store::checkpoint): texts are dictionaries. If the objects have
    /// several schemas, the column `_schema` names the schema of each, and an attribute with different types is text.
    ///
    /// # Errors
    /// `Corrupt` if values do not match their types; `LimitExceeded` for more than 4,294,967,295 objects, for an
    /// attribute with more than 2 GiB of distinct values, and if the number of objects times the number of undeclared
    /// attribute names exceeds 2^30.
    pub fn to_arrow(&self) -> Result<RecordBatch> {
        let count = self.count()?;
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        let mut open_values = 0;
        for attribute in self.attributes() {
            let column = self.joined(&attribute)?;
            if column.values_len() > 0 {
                if attribute.is_open() {
                    open_values += u64::from(count);
                    check_open_values(open_values)?;
                }
                let array = segment::arrays(&column, attribute.kind)?(0..count)?;
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

    /// Returns one attribute of all objects, by its name (`@name` if undeclared): its distinct values, in canonical
    /// text and in the order of their first occurrence, and for each object the index of its value; -1: none.
    ///
    /// # Errors
    /// `LimitExceeded` for more than 4,294,967,295 objects.
    pub fn column(&self, name: &str) -> Result<(Vec<String>, Vec<i32>)> {
        let count = self.count()?;
        let attributes = self.attributes();
        let Some(attribute) = attributes.iter().find(|attribute| attribute.name == name) else {
            return Ok((Vec::new(), vec![NONE; count as usize]));
        };
        let (mut values, mut numbers) = (Vec::new(), Vec::with_capacity(count as usize));
        let mut known: HashMap<&str, i32> = HashMap::new();
        let mut columns = attribute.columns.iter().peekable();
        for (part, (_, _, rows)) in self.parts().enumerate() {
            let Some((_, column)) = columns.next_if(|(of, _)| *of == part) else {
                numbers.resize(numbers.len() + rows.len(), NONE);
                continue;
            };
            // The index in the result for each value of this column, once a row has it.
            let mut here = vec![None; column.values_len() + 1];
            here[0] = Some(NONE);
            numbers.extend(rows.iter().map(|&row| {
                *here[column.number(row) as usize].get_or_insert_with(|| {
                    let text = column.text(row).unwrap_or_default();
                    *known.entry(text).or_insert_with(|| {
                        values.push(text.to_owned());
                        values.len() as i32 - 1
                    })
                })
            }));
        }
        Ok((values, numbers))
    }

    fn count(&self) -> Result<u32> {
        u32::try_from(self.len()).map_err(|_| {
            let cause = format!("a table has no more than {} rows", u32::MAX);
            Error::new(Code::LimitExceeded, format!("{} objects", self.len()), cause)
        })
    }

    fn attributes(&self) -> Vec<AttributeColumns<'_>> {
        let mut found: Vec<AttributeColumns<'_>> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (index, schema) in self.snapshot().store().schemas().iter().enumerate() {
            let parts = || self.parts().enumerate().filter(|(_, (of, ..))| *of == index);
            let tables: Vec<&RowTable> = parts().map(|(_, (_, table, _))| table).collect();
            if tables.is_empty() {
                continue;
            }
            let mut of_schema: HashMap<(AttrId, &str), usize> = HashMap::new();
            for (id, name) in attributes(schema, &tables) {
                let (name_there, kind) = match id {
                    AttrId::OPEN => (format!("@{name}"), Type::String),
                    id => (name.to_owned(), segment::type_of(id, schema)),
                };
                let at = *known.entry_ref(&name_there).or_insert(found.len());
                if at == found.len() {
                    found.push(AttributeColumns {
                        name: name_there,
                        kind,
                        columns: Vec::new(),
                    });
                } else if found[at].kind != kind {
                    found[at].kind = Type::String;
                }
                of_schema.insert((id, if id == AttrId::OPEN { name } else { "" }), at);
            }
            for (part, (_, table, _)) in parts() {
                for column in table.columns() {
                    if let Some(&at) = of_schema.get(&(column.id(), column.name())) {
                        found[at].columns.push((part, column));
                    }
                }
            }
        }
        found
    }

    /// Returns the values of all objects in one column.
    fn joined(&self, attribute: &AttributeColumns<'_>) -> Result<TextColumn> {
        let mut joined = TextColumn::new(AttrId::OPEN, "");
        let mut columns = attribute.columns.iter().peekable();
        let mut first = 0;
        for (part, (_, _, rows)) in self.parts().enumerate() {
            if let Some((_, column)) = columns.next_if(|(of, _)| *of == part) {
                // The new index of each of its values, once a row has it.
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
            segment::check_texts(&joined)?;
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

    /// Returns the file of each object.
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

impl AttributeColumns<'_> {
    fn is_open(&self) -> bool {
        self.name.starts_with('@')
    }
}

fn check_open_values(count: u64) -> Result<()> {
    if count <= OPEN_VALUES_MAX {
        return Ok(());
    }
    let cause = format!("more than {OPEN_VALUES_MAX} values that most objects do not have: list fewer values");
    Err(Error::new(Code::LimitExceeded, "undeclared attributes", cause))
}

fn unfit(error: &ArrowError) -> Error {
    Error::new(Code::Corrupt, "listing", error.to_string())
}
