//! Weights, and fields that are regridded in one process.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use junctura::remap::{ApplyOptions, NormalizeBy, Weights};
use junctura::{Result, read_weights, regrid_field};

use crate::array::element;
use crate::call::argument::{bytes as read_bytes, bytes_mut, put, text};
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;

/// Weights from one grid to another.
pub struct WeightsHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for WeightsHandle {
    type Value = Arc<Weights>;
    const TAG: u64 = 0x6a63_745f_7765_6967;
    const NAME: &'static str = "weights";
}

/// Reads a file of weights, which `junctura weights convert` makes of netCDF files of SCRIP, ESMF and YAC.
/// Blocks until the file is read. Close it with jct_weights_close. There are no options yet: NULL or "".
/// Errors: JCT_NOT_FOUND, JCT_IO, JCT_CORRUPT, JCT_UNSUPPORTED, JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_weights_open(
    path: *const c_char,
    options: *const c_char,
    out: *mut *mut WeightsHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                OptionWords::read(options)?.finish()?;
                read_weights(text("path", path)?).map(Arc::new)
            })
        }
    })
}

/// Returns the numbers of points of the source grid and of the target grid; both places may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_weights_points(
    weights: *const WeightsHandle,
    sources: *mut u64,
    targets: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(sources, 0);
            put(targets, 0);
            let weights = handle::shared(weights)?;
            put(sources, weights.sources() as u64);
            put(targets, weights.targets() as u64);
        }
        Ok(())
    })
}

/// Regrids a field: `source_bytes` bytes at `source` become `target_bytes` at `target`. `type` is that of
/// both: "f4" or "f8". Each target point is one sum in double precision, in the order of source points.
/// Points are in the order of the file: a row-major array whose last index is the fastest dimension of the
/// grid (latitudes by longitudes), or a column-major one whose first index is. Does not block.
///
/// Options:
///   norm=whole|destarea|fracarea  target points of which a source is missing: missing; missing sources add
///                nothing; the rest is divided by its weights (default: whole)
///   missing=X    the value of missing points besides NaN; target points without a source get it, else NaN
///
/// Errors: JCT_INVALID_ARGUMENT where the memory has another length than the grids; JCT_UNSUPPORTED for
/// another type.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a function of C")]
pub unsafe extern "C" fn jct_weights_apply(
    weights: *const WeightsHandle,
    r#type: *const c_char,
    source: *const c_void,
    source_bytes: usize,
    target: *mut c_void,
    target_bytes: usize,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (weights, element) = (handle::shared(weights)?, element(r#type)?);
            let mut words = OptionWords::read(options)?;
            let how = apply_options(&mut words)?;
            words.finish()?;
            let source = read_bytes("source", source, source_bytes)?;
            regrid_field(
                weights,
                element,
                source,
                bytes_mut("target", target, target_bytes)?,
                how,
            )
        }
    })
}

/// Reads the options `norm` and `missing`.
pub(super) fn apply_options(words: &mut OptionWords<'_>) -> Result<ApplyOptions> {
    let norms = [
        ("whole", NormalizeBy::Whole),
        ("destarea", NormalizeBy::Destination),
        ("fracarea", NormalizeBy::Fraction),
    ];
    Ok(ApplyOptions {
        norm: words.one_of("norm", &norms)?.unwrap_or_default(),
        missing: words.number("missing")?,
    })
}

/// Closes weights. Exchanges that were opened with them are not affected. NULL has no effect. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_weights_close(weights: *mut WeightsHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(weights) }.map(drop));
}
