//! Rows written line by line of 64 bytes, each once: a line is made in a register, from all the runs that meet in it, and
//! bypasses the caches. The partial line at the end of a row waits for the next one.
//!
//! Needs AVX-512 (byte-wise masks). Only lanes that a mask names are read or written, and the others cause no fault: so a
//! load may cover lanes before a run or after it, and neither reads nor touches these bytes.

#[allow(clippy::wildcard_imports, reason = "they all begin with _mm")]
use std::arch::x86_64::*;

use crate::rows::{ASKED_BYTES_MAX, PrefetchMode, RepeatedRuns, RowOperation, RowSources, RowWalk, WrittenSpans};

/// The way in which units are loaded into a line.
pub(crate) trait LineFill {
    /// Bytes of a source unit.
    const FROM: usize;
    /// Bytes of a destination unit.
    const TO: usize;
    const LINE: usize = 64 / Self::TO;

    /// Returns `line` with the units that `mask` names. The first unit of the line would be at `from`.
    ///
    /// # Safety
    /// The units that `mask` names can be read; this machine has AVX-512.
    unsafe fn load(line: __m512i, mask: u64, from: *const u8) -> __m512i;

    /// All units of a line.
    ///
    /// # Safety
    /// As of [`Self::load`].
    unsafe fn whole(from: *const u8) -> __m512i;

    /// A line as it is written.
    ///
    /// # Safety
    /// This machine has AVX-512.
    unsafe fn finish(line: __m512i) -> __m512i {
        line
    }
}

/// Bytes as they are.
pub(crate) struct PlainBytes;

impl LineFill for PlainBytes {
    const FROM: usize = 1;
    const TO: usize = 1;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(line: __m512i, mask: u64, from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for what the mask names.
        unsafe { _mm512_mask_loadu_epi8(line, mask, from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn whole(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for a line.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
}

/// Bytes, of which each `W` are reversed.
pub(crate) struct ReversedBytes<const W: usize>;

impl<const W: usize> LineFill for ReversedBytes<W> {
    const FROM: usize = 1;
    const TO: usize = 1;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(line: __m512i, mask: u64, from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for what the mask names.
        unsafe { _mm512_mask_loadu_epi8(line, mask, from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn whole(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for a line.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn finish(line: __m512i) -> __m512i {
        _mm512_shuffle_epi8(line, reversal(W))
    }
}

/// `f64` into `f32`.
pub(crate) struct NarrowFloats<const SWAP_FROM: bool, const SWAP_TO: bool>;

impl<const SWAP_FROM: bool, const SWAP_TO: bool> LineFill for NarrowFloats<SWAP_FROM, SWAP_TO> {
    const FROM: usize = 8;
    const TO: usize = 4;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(line: __m512i, mask: u64, from: *const u8) -> __m512i {
        // SAFETY: the caller guarantees the lanes that the mask names: eight bytes each, eight lanes in each half.
        let (low, high) = unsafe {
            (
                _mm512_maskz_loadu_epi64(mask as u8, from.cast()),
                _mm512_maskz_loadu_epi64((mask >> 8) as u8, from.wrapping_add(64).cast()),
            )
        };
        _mm512_mask_mov_epi32(line, mask as u16, narrowed::<SWAP_FROM>(low, high))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn whole(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for sixteen units of eight bytes.
        let (low, high) = unsafe {
            (
                _mm512_loadu_si512(from.cast()),
                _mm512_loadu_si512(from.wrapping_add(64).cast()),
            )
        };
        narrowed::<SWAP_FROM>(low, high)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn finish(line: __m512i) -> __m512i {
        if SWAP_TO {
            _mm512_shuffle_epi8(line, reversal(4))
        } else {
            line
        }
    }
}

/// `f32` into `f64`.
pub(crate) struct WidenFloats<const SWAP_FROM: bool, const SWAP_TO: bool>;

impl<const SWAP_FROM: bool, const SWAP_TO: bool> LineFill for WidenFloats<SWAP_FROM, SWAP_TO> {
    const FROM: usize = 4;
    const TO: usize = 8;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn load(line: __m512i, mask: u64, from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for what the mask names: eight lanes of four bytes.
        let units = unsafe { _mm256_maskz_loadu_epi32(mask as u8, from.cast()) };
        _mm512_mask_mov_epi64(line, mask as u8, widened::<SWAP_FROM>(units))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn whole(from: *const u8) -> __m512i {
        // SAFETY: the caller vouches for eight units of four bytes.
        widened::<SWAP_FROM>(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn finish(line: __m512i) -> __m512i {
        if SWAP_TO {
            _mm512_shuffle_epi8(line, reversal(8))
        } else {
            line
        }
    }
}

/// Sixteen `f64` as `f32`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn narrowed<const SWAP: bool>(mut low: __m512i, mut high: __m512i) -> __m512i {
    if SWAP {
        low = _mm512_shuffle_epi8(low, reversal(8));
        high = _mm512_shuffle_epi8(high, reversal(8));
    }
    let low = _mm256_castps_si256(_mm512_cvtpd_ps(_mm512_castsi512_pd(low)));
    let high = _mm256_castps_si256(_mm512_cvtpd_ps(_mm512_castsi512_pd(high)));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Eight `f32` as `f64`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn widened<const SWAP: bool>(mut units: __m256i) -> __m512i {
    if SWAP {
        units = _mm256_shuffle_epi8(units, _mm512_castsi512_si256(reversal(4)));
    }
    _mm512_castpd_si512(_mm512_cvtps_pd(_mm256_castsi256_ps(units)))
}

/// For a shuffle that reverses each `width` bytes: 2, 4 or 8. A shuffle counts within 16 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(crate) fn reversal(width: usize) -> __m512i {
    let low = match width {
        2 => 0x0607_0405_0203_0001,
        4 => 0x0405_0607_0001_0203,
        _ => 0x0001_0203_0405_0607,
    };
    let high = low + 0x0808_0808_0808_0808;
    _mm512_set_epi64(high, low, high, low, high, low, high, low)
}

/// The line that is being made.
#[derive(Clone, Copy)]
struct LineBuffer {
    /// The destination: a multiple of 64.
    line: *mut u8,
    units: __m512i,
    /// Units in front of the first that is ours.
    first: usize,
    /// Units up to the last that we have.
    have: usize,
}

/// Lets the rows of [`Rows`](crate::rows::ProductRows) be written by lines. `STREAM`: past the caches.
pub(crate) struct LineRows<F, const STREAM: bool> {
    pen: LineBuffer,
    ahead: PrefetchMode,
    fill: std::marker::PhantomData<F>,
}

impl<F: LineFill, const STREAM: bool> LineRows<F, STREAM> {
    /// Only where [`are_there`].
    pub(crate) fn new(ahead: PrefetchMode) -> Self {
        Self {
            pen: LineBuffer::new(),
            ahead,
            fill: std::marker::PhantomData,
        }
    }

    /// Writes all rows, and the partial last line; no later write becomes visible before these.
    ///
    /// # Safety
    /// As of [`RowWalk::run`]; where the walk writes begins a unit.
    pub(crate) unsafe fn all(mut self, walk: &mut RowWalk<'_>) {
        // SAFETY: as of this function.
        unsafe {
            walk.run(&mut self);
            self.pen.leave::<F>();
            _mm_sfence();
        }
    }
}

impl<F: LineFill, const STREAM: bool> RowOperation for LineRows<F, STREAM> {
    #[inline]
    unsafe fn rows(&mut self, runs: &RepeatedRuns, from: &mut RowSources, into: (*mut u8, usize), count: u64) {
        // SAFETY: `new` is only called where there is AVX-512; the caller vouches for the runs.
        unsafe { rows::<F, STREAM>(&mut self.pen, self.ahead, runs, from, into, count) }
    }

    unsafe fn together(&mut self, runs: &RepeatedRuns, from: &mut RowSources, begins: &[*const u8], into: &[*mut u8]) {
        // SAFETY: as of `rows`.
        unsafe { together::<F, STREAM>(&mut self.pen, self.ahead, runs, from, begins, into) }
    }
}

/// See [`RowOperation::together`].
///
/// # Safety
/// As for that function; this machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn together<F: LineFill, const STREAM: bool>(
    pen: &mut LineBuffer,
    ahead: PrefetchMode,
    runs: &RepeatedRuns,
    from: &mut RowSources,
    begins: &[*const u8],
    into: &[*mut u8],
) {
    let again = (0..runs.times as usize).map(|time| (&runs.again, time));
    // A run that occurs once stays in its place, for any number of repetitions of the others.
    for (of_row, time) in again.chain([(&runs.once, 0)]) {
        for (begins, into) in begins.chunks(runs.steps.len()).zip(into) {
            from.rows.clear();
            from.rows.extend(begins);
            move_on(&mut from.rows, &runs.steps, time);
            // SAFETY: as of this function.
            unsafe { spans::<F, STREAM>(pen, ahead, of_row, from, into.wrapping_add(time * runs.step)) };
        }
    }
}

/// See [`RowOperation::rows`].
///
/// # Safety
/// As for that function; this machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn rows<F: LineFill, const STREAM: bool>(
    pen: &mut LineBuffer,
    ahead: PrefetchMode,
    runs: &RepeatedRuns,
    from: &mut RowSources,
    (mut into, step): (*mut u8, usize),
    count: u64,
) {
    for _ in 0..count {
        let mut begin = into;
        for _ in 0..runs.times {
            // SAFETY: as of this function.
            unsafe { spans::<F, STREAM>(pen, ahead, &runs.again, from, begin) };
            begin = begin.wrapping_add(runs.step);
            move_on(&mut from.rows, &runs.steps, 1);
        }
        move_on(&mut from.rows, &runs.steps, runs.times.wrapping_neg() as usize);
        // SAFETY: as of this function.
        unsafe { spans::<F, STREAM>(pen, ahead, &runs.once, from, into) };
        into = into.wrapping_add(step);
        move_on(&mut from.rows, &from.steps, 1);
    }
}

#[inline]
fn move_on(rows: &mut [*const u8], steps: &[usize], times: usize) {
    for (row, step) in rows.iter_mut().zip(steps) {
        *row = row.wrapping_add(step.wrapping_mul(times));
    }
}

/// How far ahead lines are asked for, in bytes.
const LINES_AHEAD: usize = 1024;
/// So many bytes at a time.
const LINES_AT_ONCE: usize = 256;

/// Some of the runs of a row.
///
/// # Safety
/// As of [`rows`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn spans<F: LineFill, const STREAM: bool>(
    kept: &mut LineBuffer,
    ahead: PrefetchMode,
    spans: &WrittenSpans,
    from: &mut RowSources,
    into: *mut u8,
) {
    // One's own, which stays in registers.
    let mut pen = *kept;
    for span in &spans.spans {
        // SAFETY: as of this function.
        unsafe { pen.go_to::<F>(into.wrapping_add(span.into)) };
        for run in &spans.runs[span.runs.clone()] {
            // SAFETY: runs name sources that there are; as of this function.
            unsafe {
                let source = run.source as usize;
                let begin = from.rows.get_unchecked(source).wrapping_add(run.from as usize);
                let bytes = (run.units as usize * F::FROM).min(ASKED_BYTES_MAX as usize);
                match ahead {
                    PrefetchMode::Lines => ask_for_lines(from.asked.get_unchecked_mut(source), begin, bytes),
                    PrefetchMode::Next => {
                        ask_for::<_MM_HINT_T0>(begin.wrapping_add(*from.next.get_unchecked(source)), bytes);
                    }
                    PrefetchMode::NextFar => {
                        ask_for::<_MM_HINT_T1>(begin.wrapping_add(*from.next.get_unchecked(source)), bytes);
                    }
                    PrefetchMode::Nothing => {}
                }
                pen.put::<F, STREAM>(begin, run.units as usize);
            }
        }
    }
    *kept = pen;
}

/// Prefetches a source's memory line by line, within runs and between them: sequential reads are fastest. `asked` is the
/// end of the prefetched part.
#[inline]
#[target_feature(enable = "avx512f")]
fn ask_for_lines(asked: &mut *const u8, begin: *const u8, bytes: usize) {
    // How far it was asked for beyond `begin`; what was asked for elsewhere is far away.
    let mut ahead = (*asked as usize).wrapping_sub(begin as usize);
    if ahead > bytes + LINES_AHEAD + 64 {
        ahead = 0;
    }
    if ahead >= bytes + LINES_AHEAD - LINES_AT_ONCE {
        return;
    }
    while ahead < bytes + LINES_AHEAD {
        // Where there is no memory, this does nothing.
        _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(ahead).cast());
        ahead += 64;
    }
    *asked = begin.wrapping_add(ahead);
}

/// Prefetches the memory of a run; the rest of its last line is prefetched with the next run.
#[inline]
#[target_feature(enable = "avx512f")]
fn ask_for<const HINT: i32>(begin: *const u8, bytes: usize) {
    let mut at = 0;
    loop {
        // Where there is no memory, this does nothing.
        _mm_prefetch::<HINT>(begin.wrapping_add(at).cast());
        at += 64;
        if at >= bytes {
            return;
        }
    }
}

/// The lowest `count` bits, of at most 64.
#[inline]
#[target_feature(enable = "bmi2")]
pub(crate) fn lowest(count: usize) -> u64 {
    _bzhi_u64(u64::MAX, count as u32)
}

impl LineBuffer {
    fn new() -> Self {
        Self {
            line: std::ptr::null_mut(),
            // SAFETY: any bits are units.
            units: unsafe { std::mem::zeroed() },
            first: 0,
            have: 0,
        }
    }

    /// Continues at another place, which may be the current one.
    ///
    /// # Safety
    /// As of [`rows`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn go_to<F: LineFill>(&mut self, into: *mut u8) {
        if self.line.wrapping_add(self.have * F::TO) == into && !self.line.is_null() {
            return;
        }
        // SAFETY: as of this function.
        unsafe { self.leave::<F>() };
        let within = into as usize % 64;
        self.line = into.wrapping_sub(within);
        (self.first, self.have) = (within / F::TO, within / F::TO);
    }

    /// Writes what it has of the line, as it is not going on with it.
    ///
    /// # Safety
    /// As of [`rows`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn leave<F: LineFill>(self) {
        if self.have > self.first {
            let mask = lowest(self.have * F::TO) & !lowest(self.first * F::TO);
            // SAFETY: units from `first` to `have` were put, so that they are ours to write.
            unsafe { _mm512_mask_storeu_epi8(self.line.cast(), mask, F::finish(self.units)) };
        }
    }

    /// # Safety
    /// As of [`rows`]: `count` units can be read at `from`, and so many written where the pen is.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn put<F: LineFill, const STREAM: bool>(&mut self, from: *const u8, count: usize) {
        let before = from.wrapping_sub(self.have * F::FROM);
        let room = F::LINE - self.have;
        // SAFETY: the mask names units of the run only.
        unsafe {
            if count < room {
                let mask = lowest(count) << self.have;
                self.units = F::load(self.units, mask, before);
                self.have += count;
                return;
            }
            let (mut from, mut left) = (from, count);
            if self.have > 0 {
                let line = F::load(self.units, lowest(F::LINE) & !lowest(self.have), before);
                self.write::<F, STREAM>(line);
                from = from.wrapping_add(room * F::FROM);
                left -= room;
            }
            while left >= F::LINE {
                let line = F::whole(from);
                self.write::<F, STREAM>(line);
                from = from.wrapping_add(F::LINE * F::FROM);
                left -= F::LINE;
            }
            self.units = F::load(_mm512_setzero_si512(), lowest(left), from);
            self.have = left;
        }
    }

    /// Writes a full line, and continues with the next.
    ///
    /// # Safety
    /// As of [`Self::put`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn write<F: LineFill, const STREAM: bool>(&mut self, line: __m512i) {
        // SAFETY: all units from `first` on were put; `line` is a multiple of 64.
        unsafe {
            let line = F::finish(line);
            if self.first > 0 {
                _mm512_mask_storeu_epi8(self.line.cast(), !lowest(self.first * F::TO), line);
                self.first = 0;
            } else if STREAM {
                _mm512_stream_si512(self.line.cast(), line);
            } else {
                _mm512_storeu_si512(self.line.cast(), line);
            }
        }
        self.line = self.line.wrapping_add(64);
        self.have = 0;
    }
}
