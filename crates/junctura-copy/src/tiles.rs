//! Copies between memories where a row is contiguous in one and a column in the other.
//!
//! ```text
//!   read: the runs of a column       8 strips       turned in registers     a buffer of rows       written: whole lines
//!   | a0 a1 | a2 … |       ->     | a0 a1 a2 … |     | a0 b0 c0 … |          256 rows of what       past the caches
//!   | b0 b1 | b2 … |              | b0 b1 b2 … |  -> | a1 b1 c1 … |    ->    64 columns give    ->
//! ```
//! A strip is a column without gaps: so a column is read from its beginning to its end, sequentially, and no tile is a
//! partial one. The partial line at the end of a row of the buffer waits there for the next columns. Needs what
//! [`lines`](crate::lines) need.

#[allow(clippy::wildcard_imports, reason = "they all begin with _mm")]
use std::arch::x86_64::*;

use crate::lines::{lowest, reversal};
use crate::portable::SlowOffsets;
use crate::product::{EntryList, IndexSegment, ListProduct, PeerSource};
use crate::work::SharedTarget;

/// Indices along the rows that are written, whose columns are read one after another.
const COLUMNS: u64 = 64;
/// Rows that are written together.
const ROWS: u64 = 256;
/// Columns that are turned together.
const STRIPS: usize = 8;
/// Bytes from one row of the buffer to the next: the rest, and one round of columns. No power of two, which would collide
/// in the caches.
const PITCH: usize = 64 + COLUMNS as usize * 8;
/// Bytes from one strip to the next: no power of two either.
const STRIP_BYTES: usize = ROWS as usize * 8 + 64;
/// Elements between two runs of a column that are asked for with them.
const GAP_MAX: u64 = 128;
/// With more entries of a dimension nothing is worked out beforehand.
const SEGS_MAX: u64 = 1 << 20;

/// The precomputed plan.
#[derive(Clone, Debug)]
pub(crate) struct TilePlan {
    /// The dimension that is contiguous in the source.
    across: usize,
    /// For each list of the dimension.
    rows: Vec<Vec<IndexChunk>>,
    /// For each list of the last dimension, which is contiguous in the destination.
    columns: Vec<Vec<IndexChunk>>,
    /// Combinations from one coordinate of a dimension to the next.
    weights: Vec<usize>,
    /// The most rows of a chunk.
    rows_max: u64,
}

/// Some indices of a dimension.
#[derive(Clone, Debug, Default)]
struct IndexChunk {
    segs: Vec<IndexSegment>,
    length: u64,
}

impl TilePlan {
    /// Returns `None` where no dimension is contiguous in all sources, or none in the destination.
    pub(crate) fn new(product: &ListProduct) -> Option<Self> {
        let last = product.dims.len() - 1;
        let is_quickest = |dim: &usize| product.sources.iter().all(|source| source.strides[*dim] == 1);
        let across = (0..last).rev().find(is_quickest)?;
        let segs = |dim: usize| product.dims[dim].lists.iter().map(EntryList::count).sum::<u64>();
        if product.dims[last].stride != 1 || product.sources.is_empty() || segs(last).max(segs(across)) > SEGS_MAX {
            return None;
        }
        let chunks = |dim: usize, most: u64, is_gapless: bool| {
            let lists = product.dims[dim].lists.iter();
            lists
                .map(|list| cut(list, product.dims[dim].stride, most, is_gapless))
                .collect()
        };
        let mut weights = vec![1; last + 1];
        for dim in (0..last).rev() {
            weights[dim] = weights[dim + 1] * product.dims[dim + 1].coordinates;
        }
        let rows: Vec<Vec<IndexChunk>> = chunks(across, ROWS, false);
        Some(Self {
            across,
            rows_max: rows.iter().flatten().map(|chunk| chunk.length).max().unwrap_or(0),
            rows,
            columns: chunks(last, COLUMNS, true),
            weights,
        })
    }
}

/// Into chunks of at most so many indices.
fn cut(list: &EntryList, stride: u64, most: u64, is_gapless: bool) -> Vec<IndexChunk> {
    let mut chunks: Vec<IndexChunk> = Vec::new();
    let mut end = None;
    for seg in list.each() {
        let mut from = 0;
        while from < seg.length {
            let is_next = !is_gapless || end == Some(seg.into + from * stride);
            if chunks.last().is_none_or(|chunk| chunk.length == most || !is_next) {
                chunks.push(IndexChunk::default());
            }
            let Some(chunk) = chunks.last_mut() else { break };
            let to = seg.length.min(from + most - chunk.length);
            chunk.segs.push(seg.part(from, to, stride));
            chunk.length += to - from;
            end = Some(seg.into + to * stride);
            from = to;
        }
    }
    chunks
}

/// How eight elements are read and written.
pub(crate) trait EightLanes {
    /// Bytes of a source element.
    const FROM: usize;
    /// Bytes of a destination element.
    const TO: usize;

    /// Each in a lane of eight bytes.
    ///
    /// # Safety
    /// They can be read; this machine has AVX-512.
    unsafe fn load(from: *const u8) -> __m512i;

    /// Writes those that `mask` names.
    ///
    /// # Safety
    /// They can be written; this machine has AVX-512.
    unsafe fn store(mask: u8, into: *mut u8, lanes: __m512i);
}

/// Elements of eight bytes, of which each `SWAP` are reversed, if any.
pub(crate) struct EightBytes<const SWAP: usize>;

impl<const SWAP: usize> EightLanes for EightBytes<SWAP> {
    const FROM: usize = 8;
    const TO: usize = 8;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for eight elements.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn store(mask: u8, into: *mut u8, lanes: __m512i) {
        let lanes = if SWAP > 0 {
            _mm512_shuffle_epi8(lanes, reversal(SWAP))
        } else {
            lanes
        };
        // SAFETY: the caller vouches for what the mask names.
        unsafe { _mm512_mask_storeu_epi64(into.cast(), mask, lanes) }
    }
}

/// Elements of four bytes, which are reversed or not.
pub(crate) struct FourBytes<const SWAP: bool>;

impl<const SWAP: bool> EightLanes for FourBytes<SWAP> {
    const FROM: usize = 4;
    const TO: usize = 4;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for eight elements.
        _mm512_cvtepu32_epi64(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn store(mask: u8, into: *mut u8, lanes: __m512i) {
        // SAFETY: the caller vouches for what the mask names.
        unsafe { store_four::<SWAP>(mask, into, _mm512_cvtepi64_epi32(lanes)) }
    }
}

/// # Safety
/// As of [`EightLanes::store`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn store_four<const SWAP: bool>(mask: u8, into: *mut u8, units: __m256i) {
    let units = if SWAP {
        _mm256_shuffle_epi8(units, _mm512_castsi512_si256(reversal(4)))
    } else {
        units
    };
    // SAFETY: the caller vouches for what the mask names.
    unsafe { _mm256_mask_storeu_epi32(into.cast(), mask, units) }
}

/// `f64` into `f32`.
pub(crate) struct NarrowingTile<const SWAP_FROM: bool, const SWAP_TO: bool>;

impl<const SWAP_FROM: bool, const SWAP_TO: bool> EightLanes for NarrowingTile<SWAP_FROM, SWAP_TO> {
    const FROM: usize = 8;
    const TO: usize = 4;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for eight elements.
        let lanes = unsafe { _mm512_loadu_si512(from.cast()) };
        if SWAP_FROM {
            _mm512_shuffle_epi8(lanes, reversal(8))
        } else {
            lanes
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn store(mask: u8, into: *mut u8, lanes: __m512i) {
        let units = _mm256_castps_si256(_mm512_cvtpd_ps(_mm512_castsi512_pd(lanes)));
        // SAFETY: the caller vouches for what the mask names.
        unsafe { store_four::<SWAP_TO>(mask, into, units) }
    }
}

/// `f32` into `f64`.
pub(crate) struct WideningTile<const SWAP_FROM: bool, const SWAP_TO: bool>;

impl<const SWAP_FROM: bool, const SWAP_TO: bool> EightLanes for WideningTile<SWAP_FROM, SWAP_TO> {
    const FROM: usize = 4;
    const TO: usize = 8;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for eight elements.
        let mut units = unsafe { _mm256_loadu_si256(from.cast()) };
        if SWAP_FROM {
            units = _mm256_shuffle_epi8(units, _mm512_castsi512_si256(reversal(4)));
        }
        _mm512_castpd_si512(_mm512_cvtps_pd(_mm256_castsi256_ps(units)))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn store(mask: u8, into: *mut u8, lanes: __m512i) {
        let lanes = if SWAP_TO {
            _mm512_shuffle_epi8(lanes, reversal(8))
        } else {
            lanes
        };
        // SAFETY: the caller vouches for what the mask names.
        unsafe { _mm512_mask_storeu_epi64(into.cast(), mask, lanes) }
    }
}

/// A line of the buffer.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct TileLine([u8; 64]);

/// A row that is being written.
#[derive(Clone, Copy)]
struct RowEnd {
    /// The destination of its next line: a multiple of 64.
    line: *mut u8,
    /// Bytes of the line before our first byte.
    first: usize,
    /// Bytes of the line that the buffer has.
    have: usize,
}

/// Copies a product tile by tile.
pub(crate) struct TileWalk<'a> {
    product: &'a ListProduct,
    tiles: &'a TilePlan,
    pieces: &'a [&'a [u8]],
    into: SharedTarget,
    is_large: bool,
    buffer: Vec<TileLine>,
    ends: Vec<RowEnd>,
    /// Of the columns that are being read.
    runs: Vec<ColumnRun>,
    strips: ColumnStrips,
}

/// Contiguous elements of a column.
#[derive(Clone, Copy)]
struct ColumnRun {
    from: *const u8,
    /// Bytes to that run of the next column.
    step: usize,
    bytes: usize,
    /// Bytes that are asked for of the next column: memory gives most in one piece, so that a small gap behind the run counts.
    asked: usize,
}

/// Columns without gaps.
struct ColumnStrips(Vec<TileLine>);

impl ColumnStrips {
    fn new() -> Self {
        Self(vec![TileLine([0; 64]); STRIPS * STRIP_BYTES / 64])
    }

    /// Brings the runs of a column together, and asks for those of the next.
    ///
    /// # Safety
    /// They can be read, and have [`ROWS`] elements of eight bytes at most.
    unsafe fn gather(&mut self, strip: usize, runs: &[ColumnRun], column: usize) {
        let mut into = self.0.as_mut_ptr().cast::<u8>().wrapping_add(strip * STRIP_BYTES);
        for run in runs {
            let from = run.from.wrapping_add(column * run.step);
            for at in (0..run.asked).step_by(64) {
                // SAFETY: every x86-64 has it, and where there is no memory it does nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(run.step + at).cast()) };
            }
            // SAFETY: the caller guarantees the source and its length; strips belong to this thread alone.
            unsafe { std::ptr::copy_nonoverlapping(from, into, run.bytes) };
            into = into.wrapping_add(run.bytes);
        }
    }

    /// Eight elements of each strip, from this one on.
    ///
    /// # Safety
    /// This machine has AVX-512.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn eight<L: EightLanes>(&self, element: usize) -> [__m512i; STRIPS] {
        let begin = self.0.as_ptr().cast::<u8>().wrapping_add(element * L::FROM);
        // SAFETY: strips have room for whole eights of elements.
        std::array::from_fn(|strip| unsafe { L::load(begin.wrapping_add(strip * STRIP_BYTES)) })
    }
}

/// Where the walk is in the dimensions that are neither along the rows nor across: elements of what is written, and the combination.
type Here = (u64, usize);

impl<'a> TileWalk<'a> {
    /// Only on machines with [`InstructionSet::Avx512`](junctura_model::InstructionSet::Avx512).
    pub(crate) fn new(
        (product, tiles): (&'a ListProduct, &'a TilePlan),
        pieces: &'a [&'a [u8]],
        into: SharedTarget,
        is_large: bool,
    ) -> Self {
        Self {
            product,
            tiles,
            pieces,
            into,
            is_large,
            buffer: vec![TileLine([0; 64]); tiles.rows_max as usize * PITCH / 64],
            ends: Vec::with_capacity(tiles.rows_max as usize),
            runs: Vec::new(),
            strips: ColumnStrips::new(),
        }
    }

    /// One thread's share.
    ///
    /// # Safety
    /// As of [`portable::copy`](crate::portable::copy), in elements of `L`; destination elements are within lines of 64
    /// bytes.
    pub(crate) unsafe fn run<L: EightLanes>(&mut self, share: (u64, u64)) {
        let product = self.product;
        let mut lists = vec![0; product.dims.len()];
        loop {
            // SAFETY: as of this function.
            unsafe { self.outer::<L>(0, &lists, (product.base, 0), &mut SlowOffsets::default(), share) };
            let mut dims = (0..lists.len()).rev();
            let Some(dim) = dims.find(|&dim| lists[dim] + 1 < product.dims[dim].lists.len()) else {
                break;
            };
            lists[dim] += 1;
            lists[dim + 1..].fill(0);
        }
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() };
    }

    /// # Safety
    /// As of [`Self::run`].
    unsafe fn outer<L: EightLanes>(
        &mut self,
        dim: usize,
        lists: &[usize],
        here: Here,
        at: &mut SlowOffsets,
        share: (u64, u64),
    ) {
        let (product, tiles) = (self.product, self.tiles);
        let last = product.dims.len() - 1;
        if dim == last {
            let rows = &tiles.rows[lists[tiles.across]];
            let part = |number: u64| (rows.len() as u128 * u128::from(number) / u128::from(share.1)) as usize;
            let rows = &rows[part(share.0)..part(share.0 + 1)];
            // SAFETY: as of this function.
            return unsafe { self.plane::<L>((rows, &tiles.columns[lists[last]]), here, at) };
        }
        if dim == tiles.across {
            // SAFETY: as of this function.
            return unsafe { self.outer::<L>(dim + 1, lists, here, at, share) };
        }
        for seg in product.dims[dim].lists[lists[dim]].each() {
            at.blocks[dim] = seg.block;
            for index in 0..seg.length {
                at.withins[dim] = seg.within + index;
                let into = here.0 + seg.into + index * product.dims[dim].stride;
                let number = here.1 + seg.source * tiles.weights[dim];
                // SAFETY: as of this function.
                unsafe { self.outer::<L>(dim + 1, lists, (into, number), at, share) };
            }
        }
    }

    /// All rows and columns of the same other indices.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn plane<L: EightLanes>(
        &mut self,
        (rows, columns): (&[IndexChunk], &[IndexChunk]),
        here: Here,
        at: &SlowOffsets,
    ) {
        let begin = |chunk: &IndexChunk| chunk.segs.first().map_or(0, |seg| seg.into);
        for row in rows {
            let mut end = None;
            for column in columns {
                // SAFETY: as of this function.
                unsafe {
                    if end != Some(begin(column)) {
                        self.leave();
                        self.begin::<L>(row, here.0 + begin(column));
                    }
                    self.fill::<L>((row, column), here, at);
                    self.flush(column.length as usize * L::TO);
                }
                end = Some(begin(column) + column.length);
            }
            // SAFETY: as of this function.
            unsafe { self.leave() };
        }
    }

    /// Notes where each row begins, `into` elements behind where its dimension does.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn begin<L: EightLanes>(&mut self, rows: &IndexChunk, into: u64) {
        let stride = self.product.dims[self.tiles.across].stride;
        for seg in &rows.segs {
            for index in 0..seg.length {
                let offset = (into + seg.into + index * stride) as usize * L::TO;
                let first = self.into.0.wrapping_add(offset);
                let within = first as usize % 64;
                self.ends.push(RowEnd {
                    line: first.wrapping_sub(within),
                    first: within,
                    have: within,
                });
            }
        }
    }

    /// Where the first element that two entries share is read, and how many bytes from one of its columns to the next.
    fn place<L: EightLanes>(
        &self,
        (row, column): (&IndexSegment, &IndexSegment),
        here: Here,
        at: &SlowOffsets,
    ) -> (*const u8, usize) {
        let (across, last) = (self.tiles.across, self.product.dims.len() - 1);
        let weights = &self.tiles.weights;
        let number = here.1 + row.source * weights[across] + column.source * weights[last];
        let source: &PeerSource = &self.product.sources[number];
        let of_row = row.block * source.jumps[across] + row.within;
        let of_column = column.block * source.jumps[last] + column.within * source.strides[last];
        let offset = (at.offset(source, last) + of_row + of_column) as usize * L::FROM;
        (
            self.pieces[source.piece].as_ptr().wrapping_add(offset),
            source.strides[last] as usize * L::FROM,
        )
    }

    /// Brings some rows of some columns into the buffer.
    ///
    /// # Safety
    /// As of [`Self::run`].
    unsafe fn fill<L: EightLanes>(
        &mut self,
        (rows, columns): (&IndexChunk, &IndexChunk),
        here: Here,
        at: &SlowOffsets,
    ) {
        let mut count = 0;
        for column in &columns.segs {
            self.note_runs::<L>((rows, column), here, at);
            for index in 0..column.length as usize {
                let strip = count % STRIPS;
                count += 1;
                // SAFETY: the product has these elements, which the caller vouches for; a strip has room for a chunk of rows. The
                // buffer has all rows, and in each the room of what is left of a line and of all columns.
                unsafe {
                    self.strips.gather(strip, &self.runs, index);
                    if strip + 1 == STRIPS || count as u64 == columns.length {
                        let into = self.buffer.as_mut_ptr().cast::<u8>().add((count - strip - 1) * L::TO);
                        turn::<L>(&self.strips, strip + 1, into, &self.ends);
                    }
                }
            }
        }
    }

    /// Notes the runs of a column.
    fn note_runs<L: EightLanes>(&mut self, (rows, column): (&IndexChunk, &IndexSegment), here: Here, at: &SlowOffsets) {
        self.runs.clear();
        let mut next = rows.segs.iter().skip(1);
        for row in &rows.segs {
            let (from, step) = self.place::<L>((row, column), here, at);
            let is_behind = |next: &&IndexSegment| (next.source, next.block) == (row.source, row.block);
            let to_next = next.next().filter(is_behind).map(|next| next.within - row.within);
            let asked = to_next
                .filter(|&bytes| bytes - row.length <= GAP_MAX)
                .unwrap_or(row.length);
            self.runs.push(ColumnRun {
                from,
                step,
                bytes: row.length as usize * L::FROM,
                asked: asked as usize * L::FROM,
            });
        }
    }

    /// Writes the whole lines that the rows of the buffer have, after so many bytes were added to each.
    ///
    /// # Safety
    /// As of [`Self::run`]: those bytes were put there.
    unsafe fn flush(&mut self, bytes: usize) {
        for (row, end) in self.ends.iter_mut().enumerate() {
            let lines = &mut self.buffer[row * PITCH / 64..][..PITCH / 64];
            end.have += bytes;
            // SAFETY: as of this function.
            unsafe { end.flush(lines, self.is_large) };
        }
    }

    /// Writes the rest, as the rows end there.
    ///
    /// # Safety
    /// As of [`Self::flush`].
    unsafe fn leave(&mut self) {
        for (row, end) in self.ends.iter().enumerate() {
            let line = &self.buffer[row * PITCH / 64];
            for at in end.first..end.have {
                // SAFETY: bytes from `first` to `have` are elements of ours, which the caller vouches for.
                unsafe { end.line.add(at).write(line.0[at]) };
            }
        }
        self.ends.clear();
    }
}

impl RowEnd {
    /// # Safety
    /// Bytes from `first` to `have` are in `lines`, and may be written; this machine has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn flush(&mut self, lines: &mut [TileLine], is_large: bool) {
        let whole = self.have / 64;
        for line in &lines[..whole] {
            // SAFETY: as of this function; `self.line` is a multiple of 64.
            unsafe {
                let bytes = _mm512_load_si512(std::ptr::from_ref(line).cast());
                if self.first > 0 {
                    _mm512_mask_storeu_epi8(self.line.cast(), !lowest(self.first), bytes);
                    self.first = 0;
                } else if is_large {
                    _mm512_stream_si512(self.line.cast(), bytes);
                } else {
                    _mm512_storeu_si512(self.line.cast(), bytes);
                }
            }
            self.line = self.line.wrapping_add(64);
        }
        self.have %= 64;
        if whole > 0 && self.have > 0 {
            lines[0] = lines[whole];
        }
    }
}

/// Strips become rows of the buffer: `into` is where the first would be if nothing were left of a line.
///
/// # Safety
/// So many strips have as many elements as there are `ends`, and as many rows can be written; this machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn turn<L: EightLanes>(strips: &ColumnStrips, count: usize, into: *mut u8, ends: &[RowEnd]) {
    let of_strips = lowest(count) as u8;
    for (number, end) in ends.chunks(8).enumerate() {
        // SAFETY: as of this function; the mask names elements of the strips only.
        unsafe {
            let turned = transposed(&strips.eight::<L>(number * 8));
            for (at, (end, lanes)) in end.iter().zip(turned).enumerate() {
                let into = into.wrapping_add((number * 8 + at) * PITCH + end.have);
                L::store(of_strips, into, lanes);
            }
        }
    }
}

/// Row `i`, column `j` becomes row `j`, column `i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn transposed(rows: &[__m512i; 8]) -> [__m512i; 8] {
    let low = |a: usize| _mm512_unpacklo_epi64(rows[a], rows[a + 1]);
    let high = |a: usize| _mm512_unpackhi_epi64(rows[a], rows[a + 1]);
    // Pairs of rows: even columns in one, odd ones in the other, two by two.
    let pairs = [low(0), high(0), low(2), high(2), low(4), high(4), low(6), high(6)];
    let four = |a: usize, b: usize| {
        (
            _mm512_shuffle_i64x2::<0b10_00_10_00>(pairs[a], pairs[b]),
            _mm512_shuffle_i64x2::<0b11_01_11_01>(pairs[a], pairs[b]),
        )
    };
    let ((e04, e26), (o15, o37)) = (four(0, 2), four(1, 3));
    let ((f04, f26), (p15, p37)) = (four(4, 6), four(5, 7));
    let first = |a, b| _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
    let second = |a, b| _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b);
    [
        first(e04, f04),
        first(o15, p15),
        first(e26, f26),
        first(o37, p37),
        second(e04, f04),
        second(o15, p15),
        second(e26, f26),
        second(o37, p37),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_by_eight_are_turned() {
        if junctura_model::InstructionSet::of_this_machine() < junctura_model::InstructionSet::Avx512 {
            return;
        }
        let from: Vec<u64> = (0..64).collect();
        let mut into = vec![0_u64; 64];
        // SAFETY: there are 64 elements on both sides.
        unsafe {
            let rows: [_; 8] = std::array::from_fn(|row| EightBytes::<0>::load(from[row * 8..].as_ptr().cast()));
            for (row, lanes) in transposed(&rows).into_iter().enumerate() {
                EightBytes::<0>::store(0xFF, into[row * 8..].as_mut_ptr().cast(), lanes);
            }
        }
        let is_turned = |at: usize| into[at] == from[at % 8 * 8 + at / 8];
        assert!((0..64).all(is_turned), "{into:?}");
    }
}
