//! An array in pieces as one object.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use junctura_layout::Layout;
use junctura_model::{Kind, Result, Schema, Type};

use super::{ArrayPart, DemandedArray};
use crate::object::Object;
use crate::pool::Pool;

/// An array that was offered in pieces, assembled for a destination that needs one object: another pool, or a store.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Layout, ArrayPiece, Pool, WholeArray};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let layout: Arc<Layout> = Arc::new("shape=4 grid=2".parse()?);
/// for (rank, mine) in [[0_u8, 1], [2, 3]].iter().enumerate() {
///     pool.offer_piece(&ArrayPiece::new(&layout, "u1".parse()?, rank as u64), [("name", "t")], mine)?;
/// }
/// let (object, whole) = WholeArray::of(&pool, pool.demand("name=t", None)?)?;
/// let whole = whole.expect("an array in pieces");
/// assert_eq!(whole.bytes(), [0, 1, 2, 3]);
/// assert!(whole.attributes(&object).contains(&("shape", "4")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WholeArray {
    bytes: Vec<u8>,
    dtype: String,
    shape: String,
}

impl WholeArray {
    /// Assembles the pieces of an array; `None` for an object without pieces. Transfers pieces from other machines, and
    /// may block on them.
    ///
    /// # Errors
    /// Those of [`Pool::array`] and [`DemandedArray::take`]; the object has then been given back.
    pub fn of(pool: &Pool, object: Object) -> Result<(Object, Option<Self>)> {
        let (object, whole) = Self::gather(pool, object);
        match whole {
            Ok(whole) => Ok((object, whole)),
            Err(error) => {
                object.give_back()?;
                Err(error)
            }
        }
    }

    /// As [`WholeArray::of`]; always returns the object, held as before.
    ///
    /// ```
    /// # use junctura::{Pool, WholeArray};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "t")], b"junctura-array 1\ndtype=<f8\nshape=4\n")?; // without its piece
    /// let (object, whole) = WholeArray::gather(&pool, pool.demand("name=t", None)?);
    /// assert!(whole.is_err() && object.is_in_pieces());
    /// # Ok(())
    /// # }
    /// ```
    pub fn gather(pool: &Pool, object: Object) -> (Object, Result<Option<Self>>) {
        if !object.is_in_pieces() {
            return (object, Ok(None));
        }
        let array = match DemandedArray::of(pool, object) {
            Ok(array) => array,
            Err(refused) => {
                let (object, error) = *refused;
                return (object, Err(error));
            }
        };
        let whole = Self::taken(&array);
        (array.into_object(), whole.map(Some))
    }

    fn taken(array: &DemandedArray) -> Result<Self> {
        let shape = array.layout().shape();
        let all = Arc::new(Layout::one(shape)?);
        let bytes = array.take(&ArrayPart::of(&all, 0))?;
        let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
        Ok(Self {
            bytes,
            dtype: array.element().to_string(),
            shape: extents.join("/"),
        })
    }

    /// Returns its elements in row-major order (C order), as bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the attributes `dtype` and `shape` of the assembled array, as far as the object's schema has them and
    /// the object does not have them already. If the schema has no place for one of them, the destination has bytes that
    /// are no array for its readers: a warning of `tracing` states it, once for each schema.
    #[must_use]
    pub fn attributes(&self, object: &Object) -> Vec<(&'static str, &str)> {
        let schema = object.schema();
        let dtype = takes(schema, "dtype", Kind::one(Type::String)).then_some(("dtype", &*self.dtype));
        let is_list = takes(schema, "shape", Kind::list_of(Type::Integer));
        let is_new = schema.is_open() && schema.find("shape").is_none();
        let shape = (is_list || is_new).then_some(("shape", &*self.shape));
        for (name, kind, is_kept) in [
            ("dtype", "string", dtype.is_some()),
            ("shape", "list of integer", shape.is_some()),
        ] {
            if !is_kept && object.get(name).is_none() && is_first(schema.name()) {
                tracing::warn!(
                    "schema {} declares no attribute {name}: arrays are kept as bytes, which readers cannot interpret; add `{name}: \
                     {{type: {kind}}}` to its attributes",
                    schema.name()
                );
            }
        }
        let said = |(name, _): &(&str, &str)| object.get(name).is_some();
        dtype.into_iter().chain(shape).filter(|one| !said(one)).collect()
    }
}

/// Whether this schema has not been reported; of very many, some never are.
fn is_first(schema: &str) -> bool {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    const REPORTED_MAX: usize = 1024;
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    reported.len() < REPORTED_MAX && reported.insert(schema.to_owned())
}

/// Whether objects of a schema have an attribute of this name and kind outside the key, or may have one.
pub(super) fn takes(schema: &Schema, name: &str, kind: Kind) -> bool {
    match schema.find(name) {
        Some(id) => schema.attribute(id).level.is_none() && schema.attribute(id).kind == kind,
        None => schema.is_open() && !kind.list,
    }
}
