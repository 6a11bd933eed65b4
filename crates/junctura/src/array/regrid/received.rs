//! The side of a rank of the target.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use junctura_layout::{Element, Layout, Slab};
use junctura_model::{Code, Error, IntoGiven, Result};
use junctura_remap::{ApplyOptions, CarriedTarget, Weights};

use super::{CarriedList, RegridTerms, invalid, numbers, points};
use crate::array::exchange::{Exchange, PieceStretch};
use crate::pool::Pool;

/// A layout with more runs takes longer to plan than the values between them take to travel.
const RUNS_MAX: usize = 256;

/// The side of a rank of the target in a coupled exchange: see [`RegridTerms`].
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
/// # let terms = RegridTerms::new(&weights, &source);
/// # let mut one = RegridSource::new(&pool, &terms, 0, "f4".parse()?)?.with(|exchange| exchange.common([("space", "coupled")]));
/// # one.put([("name", "sst")], &[1.0_f32, 3.0].map(f32::to_ne_bytes).concat())?;
/// let target: Arc<Layout> = Arc::new("shape=1".parse()?);
/// let mut side = RegridTarget::new(&pool, &terms, &target, 0, "f4".parse()?)?
///     .with(|exchange| exchange.common([("space", "coupled")]));
/// let mut mine = vec![0; side.bytes()];
/// side.get_into([("name", "sst")], None, &mut mine)?;
/// assert_eq!(mine, 6.0_f32.to_ne_bytes());
/// # Ok(())
/// # }
/// ```
pub struct RegridTarget {
    exchange: Exchange,
    /// The received elements, if they are a stretch of one piece: they are then read in place.
    stretch: Option<PieceStretch>,
    received: Vec<u8>,
    part: TargetPart,
}

/// The rank's part of the target, made of received values.
struct TargetPart {
    element: Element,
    how: ApplyOptions,
    /// Elements of its memory that are received as they are, and where.
    sums: Vec<CopiedRun>,
    /// The target points that it sums, over what it receives, and their elements.
    rows: Weights,
    slots: Vec<CopiedRun>,
    /// Elements without a source.
    missing: Vec<u64>,
    fingerprint: f64,
    fingerprints: Vec<u64>,
    room: usize,
    values: Vec<f64>,
}

/// Values behind each other, and their elements behind each other in the rank's memory.
struct CopiedRun {
    from: usize,
    to: usize,
    length: usize,
}

impl RegridTarget {
    /// Creates the side of this rank in a layout of the target. Elements are `f4` or `f8`; with those of the source, results have the
    /// bits of one sum over the whole source.
    ///
    /// # Errors
    /// As [`RegridSource::new`](super::RegridSource::new), for both layouts.
    pub fn new(
        pool: &Pool,
        terms: &RegridTerms<'_>,
        target: &Arc<Layout>,
        rank: u64,
        element: Element,
    ) -> Result<Self> {
        let weights = terms.weights;
        let mine = points::of_rank(target, weights.target_shape(), rank)?;
        let list = CarriedList::new(terms, element)?;
        let (mut sums, mut rows, mut slots, mut missing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (point, slot) in mine {
            match list.plan.target(weights, point as usize) {
                CarriedTarget::Missing => missing.push(slot),
                CarriedTarget::Sum(position) => sums.push((list.place(position), slot)),
                CarriedTarget::Sources => {
                    rows.push(point as u32);
                    slots.push(slot);
                }
            }
        }
        let needed = list.needed(weights, &rows, &sums);
        let runs = TakenRuns::of(&needed.places);
        let moved = |place: u64| runs.find(place);
        let fingerprints = needed.fingerprints.iter().filter_map(|&place| moved(place)).collect();
        let rows = weights.arranged(&rows, runs.length, |source| {
            list.plan
                .source(source)
                .and_then(|position| moved(list.place(position)))
        })?;
        let sums = sums.into_iter().filter_map(|(place, slot)| Some((moved(place)?, slot)));
        let layout = taken(&list.layout, &runs.runs)?;
        Ok(Self {
            exchange: Exchange::new(pool, &Arc::new(layout), 0, element)?,
            stretch: list.stretch(&runs.runs, element),
            received: Vec::new(),
            part: TargetPart {
                element,
                how: list.how,
                sums: copied(sums),
                values: Vec::new(),
                rows,
                slots: copied((0..).zip(slots)),
                missing,
                fingerprint: list.fingerprint,
                fingerprints,
                room: target.room(rank) as usize,
            },
        })
    }

    /// Changes the exchange that carries the values: its schema or common attributes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Exchange) -> Exchange) -> Self {
        self.exchange = change(self.exchange);
        self
    }

    /// Returns the size of the rank's memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.part.room * self.part.element.kind.bytes()
    }

    /// Receives the rank's part of the field with this key on the target grid. Blocks until all ranks of the source have put their
    /// parts. Elements between those of the layout are not written.
    ///
    /// # Errors
    /// As [`Exchange::get_into`]; `Conflict` where the source has other weights, layouts or options.
    pub fn get_into<'a, V: IntoGiven<'a>>(
        &'a mut self,
        key: impl IntoIterator<Item = (&'a str, V)>,
        timeout: Option<Duration>,
        mine: &mut [u8],
    ) -> Result<()> {
        if mine.len() != self.bytes() {
            let cause = format!(
                "the rank has {} bytes in this layout, and memory of {} was given",
                self.bytes(),
                mine.len()
            );
            return Err(invalid(cause));
        }
        let Self {
            exchange,
            stretch,
            received,
            part,
        } = self;
        let write = |received: &[u8]| part.write(received, mine);
        let written = exchange.read(key, timeout, (stretch.as_ref(), received), write);
        written.map_err(explained)
    }
}

impl TargetPart {
    fn write(&mut self, received: &[u8], mine: &mut [u8]) -> Result<()> {
        let values = numbers::doubles(received, self.element);
        let is_other = |&place: &u64| values[place as usize].to_bits() != self.fingerprint.to_bits();
        if self.fingerprints.iter().any(is_other) {
            return Err(differs());
        }
        self.sum(&values, mine)?;
        let width = self.element.kind.bytes();
        for run in &self.sums {
            let values = &received[run.from * width..][..run.length * width];
            mine[run.to * width..][..values.len()].copy_from_slice(values);
        }
        for &slot in &self.missing {
            numbers::write_at(self.how.missing.unwrap_or(f64::NAN), self.element, slot as usize, mine);
        }
        Ok(())
    }

    fn sum(&mut self, values: &[f64], mine: &mut [u8]) -> Result<()> {
        if let Some(mine) = numbers::doubles_mut(mine, self.element) {
            for run in &self.slots {
                let into = &mut mine[run.to..][..run.length];
                self.rows
                    .apply(values, run.from..run.from + run.length, into, self.how)?;
            }
            return Ok(());
        }
        let count = self.rows.targets();
        self.values.resize(count, 0.0);
        self.rows.apply(values, 0..count, &mut self.values, self.how)?;
        let width = self.element.kind.bytes();
        for run in &self.slots {
            let into = &mut mine[run.to * width..][..run.length * width];
            numbers::write(&self.values[run.from..][..run.length], self.element, into);
        }
        Ok(())
    }
}

/// The places that a rank of the target needs, and those of the fingerprints among them.
struct NeededPlaces {
    places: Vec<u64>,
    fingerprints: Vec<u64>,
}

impl CarriedList {
    /// The place of a position: each rank before it has appended a fingerprint.
    fn place(&self, position: u64) -> u64 {
        position + self.rank_at(position) as u64
    }

    fn rank_at(&self, position: u64) -> usize {
        let (mut low, mut high) = (0, self.layout.ranks() as usize);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.plan.positions(middle).end <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns where one run is in the piece of the rank that has the whole run.
    fn stretch(&self, runs: &[Range<u64>], element: Element) -> Option<PieceStretch> {
        let [run] = runs else { return None };
        let begin = |rank: u64| self.plan.positions(rank as usize).start + rank;
        let rank = (0..self.layout.ranks()).rev().find(|&rank| begin(rank) <= run.start)?;
        let (begin, length) = (begin(rank), self.layout.room(rank));
        let width = element.kind.bytes();
        (run.end <= begin + length).then(|| PieceStretch {
            layout: Arc::clone(&self.layout),
            rank,
            bytes: (run.start - begin) as usize * width..(run.end - begin) as usize * width,
        })
    }

    fn needed(&self, weights: &Weights, rows: &[u32], sums: &[(u64, u64)]) -> NeededPlaces {
        let sources = rows.iter().flat_map(|&row| weights.sources_at(row as usize));
        let positions = sources.filter_map(|&source| self.plan.source(source));
        let mut places: Vec<u64> = positions.map(|position| self.place(position)).collect();
        places.extend(sums.iter().map(|(place, _)| place));
        places.sort_unstable();
        places.dedup();
        // The fingerprint of each rank of which a value is needed; of the first where none is.
        let ends: Vec<u64> = (0..self.layout.ranks())
            .map(|rank| self.plan.positions(rank as usize).end + rank)
            .collect();
        let mut fingerprints: Vec<u64> = Vec::new();
        for &place in &places {
            let end = ends[ends.partition_point(|&end| end < place)];
            if fingerprints.last() != Some(&end) {
                fingerprints.push(end);
            }
        }
        if fingerprints.is_empty() {
            fingerprints.extend(ends.first());
        }
        places.extend(&fingerprints);
        places.sort_unstable();
        NeededPlaces { places, fingerprints }
    }
}

/// Stretches of the list, one behind the other in the memory of the rank that receives them.
struct TakenRuns {
    runs: Vec<Range<u64>>,
    /// How many values are before each run.
    before: Vec<u64>,
    length: u64,
}

impl TakenRuns {
    /// Takes all of these places, ascending, with what is between close ones, so that there are few runs.
    fn of(places: &[u64]) -> Self {
        let mut gap = 16;
        let runs = loop {
            let near = places.chunk_by(|one, next| next - one <= gap);
            let runs: Vec<Range<u64>> = near.map(|run| run[0]..run[run.len() - 1] + 1).collect();
            if runs.len() <= RUNS_MAX {
                break runs;
            }
            gap *= 4;
        };
        let mut length = 0;
        let mut before = Vec::with_capacity(runs.len());
        for run in &runs {
            before.push(length);
            length += run.end - run.start;
        }
        Self { runs, before, length }
    }

    /// Where a place is in what is received.
    fn find(&self, place: u64) -> Option<u64> {
        let at = self.runs.partition_point(|run| run.end <= place);
        let run = self.runs.get(at).filter(|run| run.contains(&place))?;
        Some(self.before[at] + place - run.start)
    }
}

/// The layout of a rank that has these runs of the list.
fn taken(list: &Layout, runs: &[Range<u64>]) -> Result<Layout> {
    let slabs = runs.iter().map(|run| Slab::new([run.start], [run.end]));
    Layout::slabs(list.shape(), vec![slabs.collect::<Result<_>>()?])
}

fn copied(pairs: impl Iterator<Item = (u64, u64)>) -> Vec<CopiedRun> {
    let mut runs: Vec<CopiedRun> = Vec::new();
    for (from, to) in pairs {
        let (from, to) = (from as usize, to as usize);
        match runs.last_mut() {
            Some(run) if run.from + run.length == from && run.to + run.length == to => run.length += 1,
            _ => runs.push(CopiedRun { from, to, length: 1 }),
        }
    }
    runs
}

/// A list of another length was made of other weights.
fn explained(error: Error) -> Error {
    if error.code() == Code::InvalidArgument {
        let cause = format!(
            "{}: does the source have the same weights, layout and options?",
            error.cause()
        );
        return Error::new(Code::Conflict, "regrid", cause);
    }
    error
}

fn differs() -> Error {
    let cause = "the source has other weights, another layout or other options than this side states";
    Error::new(Code::Conflict, "regrid", cause)
}

impl std::fmt::Debug for RegridTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegridTarget({:?})", self.exchange)
    }
}
