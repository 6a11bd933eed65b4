//! The side of a rank of the source.

use std::collections::HashMap;

use junctura_layout::Element;
use junctura_model::{IntoGiven, Result};
use junctura_remap::{ApplyOptions, Weights};

use super::{CarriedList, RegridTerms, invalid, numbers, points};
use crate::array::exchange::Exchange;
use crate::pool::Pool;

/// The side of a rank of the source in a coupled exchange: see [`RegridTerms`].
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::remap::{WeightLink, Weights};
/// # use junctura::{Layout, Pool, RegridSource, RegridTarget, RegridTerms, Retention};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # let links = [WeightLink { target: 0, source: 1, weight: 2.0 }];
/// # let weights = Weights::new(&links, &[2], &[1])?;
/// # let source: Arc<Layout> = Arc::new("shape=2".parse()?);
/// let terms = RegridTerms::new(&weights, &source);
/// let mut side = RegridSource::new(&pool, &terms, 0, "f4".parse()?)?
///     .with(|exchange| exchange.common([("space", "coupled")]).retention(Retention::Released(1)));
/// assert_eq!(side.bytes(), 8);
/// side.put([("name", "sst")], &[1.0_f32, 3.0].map(f32::to_ne_bytes).concat())?;
/// # Ok(())
/// # }
/// ```
pub struct RegridSource {
    exchange: Exchange,
    element: Element,
    how: ApplyOptions,
    /// The target points that it sums, over its own memory.
    sums: Weights,
    /// Elements of its memory that it sends as they are.
    sent: Vec<u32>,
    fingerprint: f64,
    room: usize,
    values: Vec<f64>,
    converted: Vec<u8>,
}

impl RegridSource {
    /// Creates the side of this rank. Elements are `f4` or `f8`.
    ///
    /// # Errors
    /// `InvalidArgument` for a rank that the layout does not have, a layout that does not fit the weights, or one that lacks a point
    /// that a target point needs; `Unsupported` for other elements, and layouts with packed blocks.
    pub fn new(pool: &Pool, terms: &RegridTerms<'_>, rank: u64, element: Element) -> Result<Self> {
        let mine = points::of_rank(terms.source, terms.weights.source_shape(), rank)?;
        let list = CarriedList::new(terms, element)?;
        let room = terms.source.room(rank);
        let slots: HashMap<u64, u64> = mine.into_iter().collect();
        let (sums, sources) = list.plan.of_rank(rank as usize);
        let slot = |source: u32| slots.get(&u64::from(source)).copied();
        let sent = sources
            .iter()
            .map(|&source| slot(source).and_then(|slot| u32::try_from(slot).ok()));
        let sent: Option<Vec<u32>> = sent.collect();
        let sent = sent.ok_or_else(|| invalid("the rank's memory has too many elements"))?;
        let sums = terms.weights.arranged(sums, room, slot)?;
        Ok(Self {
            exchange: Exchange::new(pool, &list.layout, rank, element)?,
            element,
            how: list.how,
            values: vec![0.0; sums.targets() + sent.len() + 1],
            converted: Vec::new(),
            sums,
            sent,
            fingerprint: list.fingerprint,
            room: room as usize,
        })
    }

    /// Changes the exchange that carries the values: its schema, retention or common attributes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Exchange) -> Exchange) -> Self {
        self.exchange = change(self.exchange);
        self
    }

    /// Returns the size of the rank's memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.room * self.element.kind.bytes()
    }

    /// Offers the rank's part of a field, as [`Exchange::put`].
    ///
    /// # Errors
    /// As [`Exchange::put`].
    pub fn put<'a, V: IntoGiven<'a>>(
        &'a mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        if mine.len() != self.bytes() {
            let cause = format!(
                "the rank has {} bytes in this layout, and {} were given",
                self.bytes(),
                mine.len()
            );
            return Err(invalid(cause));
        }
        let memory: &[f64] = &numbers::doubles(mine, self.element);
        let count = self.sums.targets();
        self.sums.apply(memory, 0..count, &mut self.values[..count], self.how)?;
        for (place, &slot) in self.values[count..].iter_mut().zip(&self.sent) {
            *place = memory[slot as usize];
        }
        if let Some(last) = self.values.last_mut() {
            *last = self.fingerprint;
        }
        let bytes = numbers::bytes(&self.values, self.element, &mut self.converted);
        self.exchange.put(attributes, bytes)
    }
}

impl std::fmt::Debug for RegridSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegridSource({:?})", self.exchange)
    }
}
