//! Exchanges between ranks of two grids.

use std::ffi::{c_char, c_int};

use junctura::remap::ApplySide;
use junctura::{Exchange, RegridSource, RegridTarget, RegridTerms, Result};

use crate::array::{ExchangeHandle, ExchangeSide, OpenExchange, element, exchange_options};
use crate::attributes::{self, AttributesHandle};
use crate::call::error::guarded;
use crate::call::handle;
use crate::call::options::OptionWords;
use crate::layout::LayoutHandle;
use crate::pool::{self, PoolHandle};
use crate::regrid::weights::{WeightsHandle, apply_options};

/// Opens the source's side of an exchange between two grids, for `rank` in `layout`, that of the source
/// grid: jct_exchange_put takes the rank's part of a field on this grid. The shape of a row-major layout is
/// that of the weights' source grid, slowest dimension first; of a column-major layout, fastest first.
/// `type` is "f4" or "f8". `common` as in jct_exchange_open. Does not block. Close it with
/// jct_exchange_close.
///
/// Sums are made where fewer values travel: by ranks of the source where they have all sources of a target
/// point, else by ranks of the target. The result has the bits of jct_weights_apply in both cases, where both
/// sides have the same type.
///
/// Options: norm, missing as in jct_weights_apply; side=source|target|fewer; schema, retention as in
/// jct_exchange_open. Weights, layout of the source, norm, missing and side must be the same on all ranks of
/// both sides. Errors: those of jct_exchange_open; JCT_INVALID_ARGUMENT where the layout does not fit the
/// weights; JCT_UNSUPPORTED for other types and for packed storage.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a function of C")]
pub unsafe extern "C" fn jct_exchange_open_source(
    pool: *const PoolHandle,
    weights: *const WeightsHandle,
    layout: *const LayoutHandle,
    rank: u64,
    r#type: *const c_char,
    common: *const AttributesHandle,
    options: *const c_char,
    out: *mut *mut ExchangeHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, layout) = (pool::of(pool)?, handle::shared(layout)?);
                let mut terms = RegridTerms::new(handle::shared(weights)?, layout);
                let change = regrid_options(&mut terms, OptionWords::read(options)?)?;
                let side = RegridSource::new(pool, &terms, rank, element(r#type)?)?.with(change);
                let common = attributes::given(common)?.cloned().unwrap_or_default();
                Ok(OpenExchange::new(ExchangeSide::Source(side), common))
            })
        }
    })
}

/// Opens the target's side of an exchange between two grids, for `rank` in `target`, a layout of the target
/// grid: jct_exchange_get receives the rank's part of the field on this grid. `source` is the layout that the
/// ranks of the source have. Otherwise as jct_exchange_open_source. jct_exchange_get returns JCT_CONFLICT where
/// the source has other weights, another layout or other options.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a function of C")]
pub unsafe extern "C" fn jct_exchange_open_target(
    pool: *const PoolHandle,
    weights: *const WeightsHandle,
    source: *const LayoutHandle,
    target: *const LayoutHandle,
    rank: u64,
    r#type: *const c_char,
    common: *const AttributesHandle,
    options: *const c_char,
    out: *mut *mut ExchangeHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, target) = (pool::of(pool)?, handle::shared(target)?);
                let mut terms = RegridTerms::new(handle::shared(weights)?, handle::shared(source)?);
                let change = regrid_options(&mut terms, OptionWords::read(options)?)?;
                let side = RegridTarget::new(pool, &terms, target, rank, element(r#type)?)?.with(change);
                let common = attributes::given(common)?.cloned().unwrap_or_default();
                Ok(OpenExchange::new(ExchangeSide::Target(side), common))
            })
        }
    })
}

/// Reads the options of both sides; those of the exchange are returned as a change to it.
fn regrid_options<'w>(
    terms: &mut RegridTerms<'_>,
    mut words: OptionWords<'w>,
) -> Result<impl FnOnce(Exchange) -> Exchange + use<'w>> {
    let sides = [
        ("source", ApplySide::Source),
        ("target", ApplySide::Target),
        ("fewer", ApplySide::Fewer),
    ];
    terms.how = apply_options(&mut words)?;
    terms.side = words.one_of("side", &sides)?.unwrap_or_default();
    let change = exchange_options(&mut words)?;
    words.finish()?;
    Ok(change)
}
