//! A product whose fastest dimension is contiguous in the destination and in all sources: one list of runs of bytes for all
//! rows, computed once.
//!
//! ```text
//!   row of what is written  | peer 0 | peer 1 | peer 0 | peer 1 | ...     Run { peer, from, units }
//!                           '------- span ----------------------'         no gap in what is written
//! ```
//! From row to row only the beginning of each peer's memory moves. Units are what a kernel counts in: bytes, or elements that change.

use std::ops::Range;

use crate::portable::SlowOffsets;
use crate::product::{EntryList, IndexSegment, ListProduct, PeerSource};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct ProductRows {
    /// For each distinct spacing of peers' blocks, for each list of the last dimension.
    runs: Vec<Vec<RepeatedRuns>>,
    /// The spacing for each combination of the slower dimensions.
    ways: Vec<usize>,
    /// Units of a run, on average.
    pub(crate) typical: u64,
    pub(crate) ahead: PrefetchMode,
    pub(crate) scale: ElementScale,
}

/// How memory is asked for before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchMode {
    /// No prefetch.
    Nothing,
    /// Line by line, including the gaps between runs.
    Lines,
    /// The same run of the rows that are read next.
    Next,
    /// The same, into the second cache: the first has no room for all runs of a row.
    NextFar,
}

/// Of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementScale {
    /// Units in the destination.
    pub(crate) units: usize,
    /// Bytes of a source unit.
    pub(crate) from: usize,
    /// Bytes of a destination unit.
    pub(crate) to: usize,
}

impl ElementScale {
    /// Returns the bytes of a destination element.
    pub(crate) fn written(self) -> usize {
        self.units * self.to
    }
}

/// Runs that repeat, and those that occur once after them.
#[derive(Clone, Debug)]
pub(crate) struct RepeatedRuns {
    pub(crate) again: WrittenSpans,
    pub(crate) times: u64,
    /// Bytes from one time to the next in what is written.
    pub(crate) step: usize,
    /// The same of each coordinate.
    pub(crate) steps: Vec<usize>,
    pub(crate) once: WrittenSpans,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenSpans {
    pub(crate) runs: Vec<RowRun>,
    pub(crate) spans: Vec<WrittenSpan>,
}

/// Runs without gaps between them in what is written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenSpan {
    /// Where it begins, in bytes from the beginning of the row.
    pub(crate) into: usize,
    pub(crate) runs: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRun {
    /// Bytes from the beginning of the source's row.
    pub(crate) from: u64,
    pub(crate) units: u32,
    /// The number of the coordinate.
    pub(crate) source: u32,
}

/// So many runs at least are written out, where there are so many: less would cost time at each repetition.
const RUNS_AGAIN_MIN: usize = 128;
/// The same where lines of more runs would fall upon one place of the first cache.
const RUNS_CROWDED_MIN: usize = 8;
/// A sample of so many represents the arrangement of all runs.
const RUNS_SEEN_MAX: usize = 128;
/// Runs of blocks that are no longer than this are read block by block.
const SHORT_BYTES_MAX: u64 = 256;
const ROWS_AT_ONCE_MAX: u64 = 16;
/// The first cache has so many places for lines, each for so many at a time: 48 KiB, as processors with AVX-512 have.
const SETS: usize = 64;
const WAYS: usize = 12;
/// Of longer runs a processor reads ahead by itself.
pub(crate) const ASKED_BYTES_MAX: u64 = 2048;
const UNITS_MAX: u64 = 1 << 30;

impl ProductRows {
    /// Returns `None` where the fastest dimension has steps other than one.
    pub(crate) fn new(product: &ListProduct, scale: ElementScale) -> Option<Self> {
        let last = product.dims.len() - 1;
        let dim = &product.dims[last];
        let is_single = || {
            dim.lists
                .iter()
                .all(|list| list.first.iter().chain(&list.tail).all(|seg| seg.length == 1))
        };
        let is_dense = dim.stride == 1 && product.sources.iter().all(|source| source.strides[last] == 1);
        if product.sources.is_empty() || !(is_dense || is_single()) {
            return None;
        }
        let mut rows = Self {
            runs: Vec::new(),
            ways: Vec::new(),
            typical: 0,
            ahead: PrefetchMode::Nothing,
            scale,
        };
        let all = |way: &[(u64, u64)], again: usize| -> Vec<RepeatedRuns> {
            let lists = dim.lists.iter();
            lists.map(|list| RepeatedRuns::new(list, way, scale, again)).collect()
        };
        let mut known: Vec<Vec<(u64, u64)>> = Vec::new();
        for sources in product.sources.chunks(dim.coordinates) {
            let way: Vec<(u64, u64)> = sources
                .iter()
                .map(|source| (source.strides[last], source.jumps[last]))
                .collect();
            let number = known.iter().position(|known| *known == way).unwrap_or_else(|| {
                rows.runs.push(all(&way, RUNS_AGAIN_MIN));
                known.push(way);
                known.len() - 1
            });
            rows.ways.push(number);
        }
        let of_first = rows.runs[0].iter();
        let (count, units) = of_first.fold((0, 0), |(count, units), one| {
            let (more, longer) = one.count();
            (count + more, units + longer)
        });
        rows.typical = units / count.max(1);
        rows.ahead = rows.best_ahead();
        if rows.ahead == PrefetchMode::NextFar && product.is_by_block && rows.is_short() {
            rows.runs = known.iter().map(|way| all(way, RUNS_CROWDED_MIN)).collect();
        }
        Some(rows)
    }

    fn best_ahead(&self) -> PrefetchMode {
        let mut lists = self.runs[0].iter();
        if self.typical * self.scale.from as u64 > ASKED_BYTES_MAX {
            PrefetchMode::Nothing
        } else if lists.clone().all(|list| list.lies_together(self.scale)) {
            PrefetchMode::Lines
        } else if lists.any(|list| list.is_crowded(self.scale)) {
            PrefetchMode::NextFar
        } else {
            PrefetchMode::Next
        }
    }

    fn is_short(&self) -> bool {
        self.typical * self.scale.from as u64 <= SHORT_BYTES_MAX
    }

    pub(crate) fn of(&self, combination: usize, list: usize) -> &RepeatedRuns {
        &self.runs[self.ways[combination]][list]
    }
}

impl RepeatedRuns {
    /// `again`: so many runs at least are repeated, where there are so many.
    fn new(list: &EntryList, way: &[(u64, u64)], scale: ElementScale, again: usize) -> Self {
        let together = (again.div_ceil(list.first.len().max(1)) as u64).clamp(1, list.periods.max(1));
        let times = list.periods / together;
        let placed = |seg: IndexSegment| {
            let (stride, jump) = way[seg.source];
            let from = (seg.block * jump + seg.within * stride) as usize * scale.units * scale.from;
            (from as u64, seg)
        };
        let once = list.of_periods(times * together, list.periods);
        let once = once.chain(list.tail.iter().copied()).map(placed);
        let again = list.of_periods(0, together.min(list.periods)).map(placed);
        let step = |&(stride, jump): &(u64, u64)| {
            let elements = (list.step.block * jump + list.step.within * stride) * together;
            elements as usize * scale.units * scale.from
        };
        Self {
            again: WrittenSpans::new(again, scale),
            times,
            step: (list.step.into * together) as usize * scale.units * scale.to,
            steps: way.iter().map(step).collect(),
            once: WrittenSpans::new(once, scale),
        }
    }

    fn each(&self) -> impl Iterator<Item = &RowRun> {
        self.again.runs.iter().chain(&self.once.runs).take(RUNS_SEEN_MAX)
    }

    /// Whether the gaps between the runs of a source are not much larger than the runs.
    fn lies_together(&self, scale: ElementScale) -> bool {
        let mut ends = vec![None; self.steps.len()];
        let (mut within, mut between) = (0, 0);
        for run in self.each() {
            let bytes = u64::from(run.units) * scale.from as u64;
            within += bytes;
            let end: Option<u64> = ends[run.source as usize].replace(run.from + bytes);
            between += end.map_or(0, |end| run.from.abs_diff(end));
        }
        between <= 2 * within
    }

    /// Whether the first cache has no room for all lines of a row.
    fn is_crowded(&self, scale: ElementScale) -> bool {
        let mut lines = [0; SETS];
        for run in self.each() {
            let first = run.from as usize / 64;
            let count = (run.units as usize * scale.from).div_ceil(64).min(SETS);
            (first..first + count).for_each(|line| lines[line % SETS] += 1);
        }
        lines.iter().any(|&count| count > WAYS)
    }

    /// Runs, and their units.
    fn count(&self) -> (u64, u64) {
        let of = |spans: &WrittenSpans| {
            let units = spans.runs.iter().map(|run| u64::from(run.units)).sum::<u64>();
            (spans.runs.len() as u64, units)
        };
        let (again, once) = (of(&self.again), of(&self.once));
        (again.0 * self.times + once.0, again.1 * self.times + once.1)
    }
}

impl WrittenSpans {
    fn new(placed: impl Iterator<Item = (u64, IndexSegment)>, scale: ElementScale) -> Self {
        let mut spans = Self::default();
        let mut end = None;
        for (from, seg) in placed {
            let into = seg.into as usize * scale.units * scale.to;
            if end != Some(into) {
                let from = spans.runs.len();
                spans.spans.push(WrittenSpan { into, runs: from..from });
            }
            spans.push(from, seg, scale);
            let count = spans.runs.len();
            if let Some(span) = spans.spans.last_mut() {
                span.runs.end = count;
            }
            end = Some(into + seg.length as usize * scale.units * scale.to);
        }
        spans
    }

    fn push(&mut self, mut from: u64, seg: IndexSegment, scale: ElementScale) {
        let mut left = seg.length * scale.units as u64;
        while left > 0 {
            let units = left.min(UNITS_MAX);
            self.runs.push(RowRun {
                from,
                units: units as u32,
                source: seg.source as u32,
            });
            from += units * scale.from as u64;
            left -= units;
        }
    }
}

/// The positions of the sources' rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSources {
    /// The beginning of each source's row.
    pub(crate) rows: Vec<*const u8>,
    /// From one row to the next.
    pub(crate) steps: Vec<usize>,
    /// To the same run of the rows that are read next.
    pub(crate) next: Vec<usize>,
    /// Up to where each source's memory has been asked for.
    pub(crate) asked: Vec<*const u8>,
}

impl RowSources {
    /// Forgets the rows; what was asked for stays known.
    fn start(&mut self, sources: usize) {
        self.rows.clear();
        self.steps.clear();
        self.next.clear();
        self.asked.resize(sources, std::ptr::null());
    }
}

/// The operation on each row.
pub(crate) trait RowOperation {
    /// Handles `count` rows from `into` on, each `step` bytes after the one before.
    ///
    /// # Safety
    /// For each of the rows, all runs are within the memory readable from `from`, and writable from `into`.
    unsafe fn rows(&mut self, runs: &RepeatedRuns, from: &mut RowSources, into: (*mut u8, usize), count: u64);

    /// Handles rows whose sources begin at `begins`, row by row, each written at `into`: all rows once for each repetition
    /// of the runs.
    ///
    /// # Safety
    /// As of [`Self::rows`].
    unsafe fn together(&mut self, runs: &RepeatedRuns, from: &mut RowSources, begins: &[*const u8], into: &[*mut u8]);
}

/// Rows of a block, which are read together.
#[derive(Debug, Default)]
struct BlockRows<'a> {
    runs: Option<&'a RepeatedRuns>,
    /// The beginning of each source's row, row by row.
    from: Vec<*const u8>,
    into: Vec<*mut u8>,
}

impl BlockRows<'_> {
    fn clear(&mut self) {
        self.runs = None;
        self.from.clear();
        self.into.clear();
    }
}

/// Where a walk is.
#[derive(Clone, Copy, Debug)]
struct RowPosition {
    /// Elements of what is written.
    into: u64,
    /// Of the combination of coordinates so far.
    number: usize,
}

/// The rows of a product, of the indices `within` of one dimension.
pub(crate) struct RowWalk<'a> {
    pub(crate) product: &'a ListProduct,
    pub(crate) rows: &'a ProductRows,
    pub(crate) pieces: &'a [&'a [u8]],
    pub(crate) into: *mut u8,
    /// Which dimension is split between threads, and the part of its indices that counts.
    pub(crate) split: (usize, Range<u64>),
    from: RowSources,
    /// The rows that are read next, and the following ones, whose memory is prefetched during the read.
    together: BlockRows<'a>,
    after: BlockRows<'a>,
}

impl<'a> RowWalk<'a> {
    pub(crate) fn new(
        (product, rows): (&'a ListProduct, &'a ProductRows),
        pieces: &'a [&'a [u8]],
        into: *mut u8,
        split: (usize, Range<u64>),
    ) -> Self {
        Self {
            product,
            rows,
            pieces,
            into,
            split,
            from: RowSources::default(),
            together: BlockRows::default(),
            after: BlockRows::default(),
        }
    }

    /// Block by block of what is written, each row by row.
    ///
    /// # Safety
    /// As of [`portable::copy`](crate::portable::copy).
    pub(crate) unsafe fn run(&mut self, row: &mut dyn RowOperation) {
        let product = self.product;
        let mut lists = vec![0; product.dims.len()];
        let here = RowPosition {
            into: product.base,
            number: 0,
        };
        loop {
            // SAFETY: as of this function.
            unsafe { self.slower(row, 0, &lists, here, &mut SlowOffsets::default()) };
            let quickest = (0..lists.len())
                .rev()
                .find(|&dim| lists[dim] + 1 < product.dims[dim].lists.len());
            let Some(dim) = quickest else { break };
            lists[dim] += 1;
            lists[dim + 1..].fill(0);
        }
        // SAFETY: as of this function.
        unsafe { self.read_together(row) };
    }

    /// Walks the entries of the slower dimensions, and then the indices of each: at once where each block is read from its
    /// beginning to its end, otherwise dimension by dimension.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn slower(
        &mut self,
        row: &mut dyn RowOperation,
        dim: usize,
        lists: &[usize],
        here: RowPosition,
        at: &mut SlowOffsets,
    ) {
        let product = self.product;
        let last = product.dims.len() - 1;
        if dim == last {
            // SAFETY: as of this function.
            return unsafe {
                if self.is_at_once(at) {
                    self.at_once(row, 0, lists[last], here, at);
                } else {
                    self.indices(row, 0, lists, here, at);
                }
            };
        }
        let this = &product.dims[dim];
        let entries = &this.lists[lists[dim]];
        let mut index = entries.before;
        for whole in entries.each() {
            let seg = self.clipped(dim, index, whole);
            index += whole.length;
            let Some(seg) = seg else { continue };
            let mut here = RowPosition {
                into: here.into + seg.into,
                number: here.number * this.coordinates + seg.source,
            };
            (at.blocks[dim], at.withins[dim]) = (seg.block, seg.within);
            at.counts[dim] = seg.length;
            if product.is_by_block || dim + 1 == last {
                // SAFETY: as of this function.
                unsafe { self.slower(row, dim + 1, lists, here, at) };
                continue;
            }
            at.counts[dim] = 1;
            for _ in 0..seg.length {
                // SAFETY: as of this function.
                unsafe { self.slower(row, dim + 1, lists, here, at) };
                at.withins[dim] += 1;
                here.into += this.stride;
            }
        }
    }

    /// # Safety
    /// As of [`Self::run`].
    unsafe fn indices(
        &mut self,
        row: &mut dyn RowOperation,
        dim: usize,
        lists: &[usize],
        mut here: RowPosition,
        at: &mut SlowOffsets,
    ) {
        let last = self.product.dims.len() - 1;
        if dim + 1 >= last {
            let count = if last == 0 { 1 } else { at.counts[dim] };
            // SAFETY: as of this function.
            return unsafe { self.beginning(row, here, lists[last], at, (dim, count)) };
        }
        let begin = at.withins[dim];
        for _ in 0..at.counts[dim] {
            // SAFETY: as of this function.
            unsafe { self.indices(row, dim + 1, lists, here, at) };
            at.withins[dim] += 1;
            here.into += self.product.dims[dim].stride;
        }
        at.withins[dim] = begin;
    }

    /// Whether rows of a block are written at once.
    fn is_at_once(&self, at: &SlowOffsets) -> bool {
        let last = self.product.dims.len() - 1;
        let rows: u64 = at.counts[..last].iter().product();
        self.product.is_by_block && self.rows.is_short() && rows > 1
    }

    /// The rows of a block, as many at once as may be.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn at_once(
        &mut self,
        row: &mut dyn RowOperation,
        dim: usize,
        list: usize,
        mut here: RowPosition,
        at: &mut SlowOffsets,
    ) {
        let (begin, count) = (at.withins[dim], at.counts[dim]);
        let of_each: u64 = at.counts[dim + 1..self.product.dims.len() - 1].iter().product();
        let most = (ROWS_AT_ONCE_MAX / of_each).max(1);
        let mut left = count;
        while left > 0 {
            // Much the same each time: so many are asked for as are read meanwhile.
            let part = left.div_ceil(left.div_ceil(most));
            at.withins[dim] = begin + (count - left);
            at.counts[dim] = part;
            // SAFETY: as of this function.
            unsafe {
                if of_each > ROWS_AT_ONCE_MAX {
                    self.at_once(row, dim + 1, list, here, at);
                } else {
                    self.after.runs = Some(self.rows.of(here.number, list));
                    self.collect(dim, here, at);
                    self.read_together(row);
                }
            }
            here.into += part * self.product.dims[dim].stride;
            left -= part;
        }
        (at.withins[dim], at.counts[dim]) = (begin, count);
    }

    /// Reads the recorded rows, and records the following ones.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn read_together(&mut self, row: &mut dyn RowOperation) {
        let BlockRows { runs, from, into } = &self.together;
        if let Some(runs) = runs {
            let sources = from.len() / into.len();
            self.from.start(sources);
            let next = from.iter().zip(&self.after.from).take(sources);
            let steps = next.map(|(now, next)| (*next as usize).wrapping_sub(*now as usize));
            self.from.next.extend(steps);
            self.from.next.resize(sources, 0);
            // SAFETY: as of this function.
            unsafe { row.together(runs, &mut self.from, from, into) };
        }
        std::mem::swap(&mut self.together, &mut self.after);
        self.after.clear();
    }

    /// Returns the part of an entry that belongs to this thread.
    fn clipped(&self, dim: usize, index: u64, seg: IndexSegment) -> Option<IndexSegment> {
        let (split, within) = &self.split;
        if *split != dim {
            return Some(seg);
        }
        let (from, to) = (within.start.max(index), within.end.min(index + seg.length));
        (from < to).then(|| seg.part(from - index, to - index, self.product.dims[dim].stride))
    }

    /// Where the row of a source begins.
    fn place(&self, source: &PeerSource, at: &SlowOffsets) -> *const u8 {
        let bytes = self.rows.scale.units * self.rows.scale.from;
        let offset = at.offset(source, self.product.dims.len() - 1) as usize * bytes;
        // Some combinations have nothing in this block, and would begin outside.
        self.pieces[source.piece].as_ptr().wrapping_add(offset)
    }

    /// Notes where all rows of a block begin.
    fn collect(&mut self, dim: usize, mut here: RowPosition, at: &mut SlowOffsets) {
        let last = self.product.dims.len() - 1;
        if dim == last {
            let coordinates = self.product.dims[last].coordinates;
            for source in &self.product.sources[here.number * coordinates..][..coordinates] {
                let place = self.place(source, at);
                self.after.from.push(place);
            }
            let bytes = self.rows.scale.units * self.rows.scale.to;
            self.after.into.push(self.into.wrapping_add(here.into as usize * bytes));
            return;
        }
        let begin = at.withins[dim];
        for _ in 0..at.counts[dim] {
            self.collect(dim + 1, here, at);
            at.withins[dim] += 1;
            here.into += self.product.dims[dim].stride;
        }
        at.withins[dim] = begin;
    }

    /// Rows of the same sources: `count` indices of dimension `dim`.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn beginning(
        &mut self,
        row: &mut dyn RowOperation,
        RowPosition { into, number }: RowPosition,
        number_of_list: usize,
        at: &SlowOffsets,
        (dim, count): (usize, u64),
    ) {
        let last = self.product.dims.len() - 1;
        let coordinates = self.product.dims[last].coordinates;
        let sources = &self.product.sources[number * coordinates..][..coordinates];
        let bytes = self.rows.scale.units * self.rows.scale.from;
        self.from.start(coordinates);
        for source in sources {
            self.from.rows.push(self.place(source, at));
            self.from.steps.push(source.strides[dim] as usize * bytes);
        }
        self.from.next.extend(&self.from.steps);
        let to_bytes = self.rows.scale.units * self.rows.scale.to;
        let step = self.product.dims[dim].stride as usize * to_bytes;
        let runs = self.rows.of(number, number_of_list);
        // SAFETY: `into` is a place of the product, which is within the destination; the caller guarantees the runs.
        unsafe {
            let into = self.into.add(into as usize * to_bytes);
            row.rows(runs, &mut self.from, (into, step), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_are_cut_and_gaps_begin_spans() {
        let scale = ElementScale {
            units: 8,
            from: 1,
            to: 1,
        };
        let seg = |into: u64, length: u64| IndexSegment {
            source: 3,
            into,
            block: 0,
            within: 0,
            length,
        };
        let long = UNITS_MAX / 8 * 3 + 5;
        let spans = WrittenSpans::new(
            [(16, seg(0, long)), (7, seg(long, 1)), (9, seg(long + 2, 1))].into_iter(),
            scale,
        );
        let units: Vec<u32> = spans.runs.iter().map(|run| run.units).collect();
        let most = UNITS_MAX as u32;
        assert_eq!(units, [most, most, most, 40, 8, 8]);
        assert_eq!(spans.runs[3].from, 16 + 3 * UNITS_MAX);
        let of: Vec<(usize, Range<usize>)> = spans.spans.iter().map(|span| (span.into, span.runs.clone())).collect();
        assert_eq!(of, [(0, 0..5), (8 * (long as usize + 2), 5..6)]);
    }
}
