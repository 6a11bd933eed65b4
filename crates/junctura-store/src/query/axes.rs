//! The values of objects for each attribute.

use std::collections::BTreeSet;

use junctura_model::selector::SelectorQuestion;
use junctura_model::{AttrId, Result, Schema, SelectorSet};

use crate::catalogue::row_overlay::RowOverlay;
use crate::catalogue::table::{RowSet, RowTable};
use crate::query::listing::Listing;
use crate::query::snapshot::{Snapshot, asks_beyond, attributes};

/// The values of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeAxis {
    /// The attribute.
    pub name: String,
    /// Its values, in canonical text and in the order of the attribute's type.
    pub values: Vec<String>,
}

impl Snapshot {
    /// Returns the values of each attribute of the objects that the selector matches: the axes of the hypercube that
    /// they fill, completely or in part. Attributes without values are omitted; key attributes are first.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn axes(&self, selector: &str) -> Result<Vec<AttributeAxis>> {
        let set = SelectorSet::parse(selector, self.schemas())?;
        self.check_age()?;
        let axes = self.axes_of_keys(&set);
        self.check_age()?;
        match axes? {
            Some(axes) => Ok(axes),
            None => Ok(self.list(selector)?.axes()),
        }
    }

    /// As [`Self::axes`], if only key attributes exist: masked versions have the same keys as newer ones, so masking
    /// need not be determined. `None` if there are other attributes.
    fn axes_of_keys(&self, set: &SelectorSet) -> Result<Option<Vec<AttributeAxis>>> {
        let asked: Vec<_> = self
            .schemas()
            .iter()
            .zip(self.tables())
            .enumerate()
            .filter_map(|(index, (schema, tables))| Some((&**schema, tables, set.of(index)?.question())))
            .collect();
        let is_of_keys = |(schema, tables, question): &(&Schema, &Vec<RowOverlay>, SelectorQuestion<'_>)| {
            !asks_beyond(question, schema.key_len()) && tables.iter().all(|piece| piece.has_keys_only(schema.key_len()))
        };
        if !asked.iter().all(is_of_keys) {
            return Ok(None);
        }
        let mut axes = Vec::new();
        for (schema, tables, question) in asked {
            let mut found = vec![AttributeValues::default(); schema.key_len()];
            for piece in tables {
                piece.each_value(&question, |id, text| found[id.index()].insert(schema, id, text))?;
            }
            let named = (0..).map(AttrId).zip(found);
            axes.extend(named.filter_map(|(id, values)| values.axis(&schema.attribute(id).name)));
        }
        Ok(Some(axes))
    }
}

impl Listing {
    pub(crate) fn axes(&self) -> Vec<AttributeAxis> {
        let mut axes: Vec<AttributeAxis> = Vec::new();
        for (index, schema) in self.schemas().iter().enumerate() {
            let of_schema = || self.parts().filter(|(of, ..)| *of == index);
            let tables: Vec<&RowTable> = of_schema().map(|(_, table, _)| table).collect();
            let listed: Vec<RowSet> = of_schema()
                .map(|(_, table, rows)| RowSet::of(table.len(), rows))
                .collect();
            for (id, name) in attributes(schema, &tables) {
                let mut values = AttributeValues::default();
                for (table, rows) in tables.iter().zip(&listed) {
                    if let Some(column) = table.column(id, name) {
                        let used = column.used_values(rows);
                        used.for_each(|text| values.insert(schema, id, text));
                    }
                }
                axes.extend(values.axis(name));
            }
        }
        axes
    }
}

/// The values of one attribute, in the order of its type.
#[derive(Clone, Debug, Default)]
struct AttributeValues(BTreeSet<(Option<i128>, String)>);

impl AttributeValues {
    fn insert(&mut self, schema: &Schema, id: AttrId, text: &str) {
        let kind = schema.attributes().get(id.index());
        let order = kind.and_then(|attribute| attribute.kind.scalar.order(text));
        self.0.insert((order, text.to_owned()));
    }

    /// `None` if no object has the attribute.
    fn axis(self, name: &str) -> Option<AttributeAxis> {
        let values: Vec<String> = self.0.into_iter().map(|(_, text)| text).collect();
        let name = name.to_owned();
        (!values.is_empty()).then_some(AttributeAxis { name, values })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use junctura_model::selector::testing::TestRandom;

    use super::*;
    use crate::root::{StoreLayout, StoreRoot};
    use crate::storage::{MemoryDisk, StorageDisk};
    use crate::{Commits, Store};

    const SCHEMA: &str = "
name: cube
key:
  dataset: [run]
  element: [step, \"level?\"]
attributes:
  run: {type: string}
  step: {type: integer}
  level: {type: decimal}
  unit: {type: string}
";

    fn open(disk: &Arc<dyn StorageDisk>) -> Store {
        Store::open_on(Arc::clone(disk), || std::time::Duration::ZERO).unwrap()
    }

    /// Archives several versions of several keys, and removes some.
    fn archive(store: &Store, random: &mut TestRandom, unit: Option<&str>) {
        let mut writer = store.writer().unwrap();
        for _ in 0..random.below(200) {
            let (run, step) = (["a", "b", "c"][random.below(3)], random.below(30).to_string());
            let level = format!("{}.5", random.below(12));
            let mut given = vec![("run", run), ("step", &step)];
            given.extend((!random.once_in(4)).then_some(("level", &*level)));
            given.extend(unit.map(|unit| ("unit", unit)));
            writer.archive(given, b"").unwrap();
            if random.once_in(20) {
                writer.flush().unwrap();
            }
        }
        writer.flush().unwrap();
        let wiped = format!("step={},run=a", random.below(30));
        store.wipe(&wiped).unwrap();
    }

    #[test]
    fn they_are_those_of_the_listing() {
        let schema = Arc::new(Schema::parse_yaml(SCHEMA).unwrap());
        for seed in 0..30 {
            let mut random = TestRandom(seed);
            let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
            StoreRoot::create(
                &*disk,
                &[Arc::clone(&schema)],
                Commits::Appended,
                &StoreLayout::default(),
            )
            .unwrap();
            let store = open(&disk);
            for _ in 0..random.below(3) {
                archive(&store, &mut random, None);
                #[cfg(feature = "parquet")]
                store.checkpoint().unwrap();
            }
            archive(&store, &mut random, (seed % 3 == 0).then_some("K"));
            for store in [store, open(&disk)] {
                let snapshot = store.snapshot().unwrap();
                let selectors = [
                    "",
                    "run=a",
                    "step<10",
                    "level=3.5",
                    "run=a,step=7",
                    "not run=a",
                    "run=x",
                    "unit=K",
                ];
                for selector in selectors {
                    let expected = snapshot.list(selector).unwrap().axes();
                    assert_eq!(snapshot.axes(selector).unwrap(), expected, "{seed} {selector}");
                }
            }
        }
    }
}
