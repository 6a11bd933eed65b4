//! The tree of a pool, made of numbers that the server counts, without a list of all objects.
//!
//! One tally is by the attributes of the first two levels of a key. For each group, another one for each attribute of the last level has the
//! values of the elements.

use std::fmt::Write;

use junctura::{Pool, Result, Schema, Tally, TallyOptions};
use junctura_model::selector::quoted;

use super::tree::{LevelText, ObjectTree, TreeGroup};

/// Attributes of one tally, at most.
const ATTRIBUTES_MAX: usize = 8;

/// Returns the tree of the objects that match; `None` where only a list has it: many groups, lists of values, another form of selector.
pub(super) fn counted_tree(pool: &Pool, selector: &str) -> Result<Option<ObjectTree>> {
    let mut tree = ObjectTree::new(false);
    // A key is a selector of another form.
    if selector.trim_start().starts_with('{') {
        return Ok(None);
    }
    let all = pool.tally(selector, TallyOptions::default())?;
    for of_schema in &all.groups {
        let added = PoolTally {
            pool,
            selector,
            schema: &of_schema.schema,
        }
        .add_to(&mut tree)?;
        if !added {
            return Ok(None);
        }
    }
    Ok(Some(tree))
}

struct PoolTally<'a> {
    pool: &'a Pool,
    selector: &'a str,
    schema: &'a Schema,
}

impl PoolTally<'_> {
    /// Adds the objects of the schema. False: a tally does not have all.
    fn add_to(&self, tree: &mut ObjectTree) -> Result<bool> {
        let names: Vec<&str> = self.schema.attributes()[..self.schema.key_len()]
            .iter()
            .map(|attribute| attribute.name.as_str())
            .collect();
        let has_lists = self.schema.attributes()[..names.len()].iter().any(|it| it.kind.list);
        let [dataset_end, collocation_end, _] = self.schema.level_ends();
        let (shared, elements) = names.split_at(collocation_end);
        if has_lists || shared.len() > ATTRIBUTES_MAX {
            return Ok(false);
        }
        let groups = self.tally(self.selector, shared, true)?;
        if groups.others > 0 {
            return Ok(false);
        }
        for group in groups.groups.iter().filter(|group| self.is_of_it(&group.schema)) {
            let pairs: Vec<(&str, Option<&str>)> = shared
                .iter()
                .copied()
                .zip(group.values.iter().map(Option::as_deref))
                .collect();
            let mut node = TreeGroup {
                schema: self.schema,
                dataset: self.level(&pairs[..dataset_end]),
                collocation: self.level(&pairs[dataset_end..]),
                objects: group.objects,
                bytes: group.bytes.unwrap_or_default(),
                axes: Vec::new(),
            };
            let selector = self.narrowed(&pairs);
            for &name in elements {
                let axis = self.tally(&selector, &[name], false)?;
                if axis.others > 0 {
                    return Ok(false);
                }
                let of_it = axis.groups.into_iter().filter(|group| self.is_of_it(&group.schema));
                let values: Vec<String> = of_it.flat_map(|group| group.values).flatten().collect();
                node.axes.push((name, values));
            }
            tree.add_group(node);
        }
        Ok(true)
    }

    fn tally(&self, selector: &str, by: &[&str], sum_bytes: bool) -> Result<Tally> {
        let options = TallyOptions {
            by,
            sum_bytes,
            ..TallyOptions::default()
        };
        self.pool.tally(selector, options)
    }

    fn is_of_it(&self, schema: &Schema) -> bool {
        schema.name() == self.schema.name()
    }

    /// The selector of the objects that also have these values.
    fn narrowed(&self, pairs: &[(&str, Option<&str>)]) -> String {
        let mut selector = match self.selector.trim() {
            "*" => String::new(),
            some => some.to_owned(),
        };
        for (name, value) in pairs {
            selector.push_str(if selector.is_empty() { "" } else { "," });
            let _ = match value {
                Some(value) => write!(selector, "{name}={}", quoted(value)),
                None => write!(selector, "not exists({name})"),
            };
        }
        selector
    }

    /// One level of a key.
    fn level(&self, pairs: &[(&str, Option<&str>)]) -> LevelText {
        let mut level = LevelText::default();
        for (name, value) in pairs {
            if let Some(value) = value {
                level.push(self.schema, name, value);
            }
        }
        level
    }
}
