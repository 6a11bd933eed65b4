//! What is archived of objects that do not lie in one piece, or do not come alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_layout::Layout;
use junctura_model::{Kind, Result, Schema, Type};

use crate::array::Part;
use crate::object::Object;
use crate::pool::Pool;

/// Members of bundles that wait for the others, to be archived with one commit: by the last number of their bundle.
#[derive(Default)]
pub(super) struct Gathering {
    bundles: BTreeMap<u64, Vec<Object>>,
}

impl Gathering {
    /// Takes an object; gives what is complete with it: the object itself, where it came alone or is the last of its bundle, and all of
    /// a bundle whose last members do not come, since the selector does not mean them.
    pub(super) fn add(&mut self, object: Object) -> Vec<Object> {
        let (sequence, rest) = (object.version().sequence, u64::from(object.rest_of_bundle()));
        let mut complete = self.before(&object);
        let last = sequence + rest;
        if rest > 0 {
            self.bundles.entry(last).or_default().push(object);
        } else {
            complete.extend(self.bundles.remove(&last).into_iter().flatten());
            complete.push(object);
        }
        complete
    }

    /// Bundles of which nothing comes any more when this object does. What was there when the archiver began comes in another order.
    pub(super) fn before(&mut self, object: &Object) -> Vec<Object> {
        if self.bundles.is_empty() || object.in_first_phase() {
            return Vec::new();
        }
        let later = self.bundles.split_off(&object.version().sequence);
        let over = std::mem::replace(&mut self.bundles, later);
        over.into_values().flatten().collect()
    }

    /// Everything, complete or not.
    pub(super) fn take_all(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.bundles).into_values().flatten().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.bundles.values().map(Vec::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }
}

/// An array that was offered in pieces, in the order C, and what an array that was offered whole says of itself.
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    dtype: String,
    shape: String,
}

impl Whole {
    /// Gathers the pieces of an array; `None` for an object that has none. Fails with the object given back.
    pub(super) fn of(pool: &Pool, object: Object) -> Result<(Object, Option<Self>)> {
        if !object.is_in_pieces() {
            return Ok((object, None));
        }
        let array = pool.array(object)?;
        let shape = array.layout().shape();
        let taken = Layout::one(shape).and_then(|layout| array.take(&Part::of(&Arc::new(layout), 0)));
        match taken {
            Ok(bytes) => {
                let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
                let whole = Self {
                    bytes,
                    dtype: array.element().to_string(),
                    shape: extents.join("/"),
                };
                Ok((array.into_object(), Some(whole)))
            }
            Err(error) => {
                array.give_back()?;
                Err(error)
            }
        }
    }

    /// What its schema has room for, and it does not say already.
    pub(super) fn attributes(&self, object: &Object) -> Vec<(&'static str, &str)> {
        let schema = object.schema();
        let dtype = takes(schema, "dtype", Kind::one(Type::String)).then_some(("dtype", &*self.dtype));
        let is_list = takes(schema, "shape", Kind::list_of(Type::Integer));
        let is_new = schema.is_open() && schema.find("shape").is_none();
        let shape = (is_list || is_new).then_some(("shape", &*self.shape));
        let said = |(name, _): &(&str, &str)| object.get(name).is_some();
        dtype.into_iter().chain(shape).filter(|one| !said(one)).collect()
    }
}

fn takes(schema: &Schema, name: &str, kind: Kind) -> bool {
    match schema.find(name) {
        Some(id) => schema.attribute(id).level.is_none() && schema.attribute(id).kind == kind,
        None => schema.is_open() && !kind.list,
    }
}
