//! Arrays that are distributed over ranks: pieces, and exchanges that repeat them.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use junctura::{
    ArrayPart, ArrayPiece, Code, Element, Error, Exchange, Layout, OfferOptions, RegridSource, RegridTarget, Result,
    Target,
};

use crate::attributes::{self, AttributeSet, AttributesHandle};
use crate::bundle::BundleHandle;
use crate::call::argument::{bytes as read_bytes, bytes_mut, text, timeout as read_timeout};
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};
use crate::call::options::{OptionWords, offer_words};
use crate::layout::LayoutHandle;
use crate::pool::{self, PoolHandle};

/// The exchange of an array over ranks that is repeated, such as with every time step.
pub struct ExchangeHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for ExchangeHandle {
    type Value = OpenExchange;
    const TAG: u64 = 0x6a63_745f_6578_6368;
    const NAME: &'static str = "exchange";
}

/// The contents of a handle.
#[doc(hidden)]
pub struct OpenExchange {
    side: ExchangeSide,
    common: AttributeSet,
}

/// The operation of an exchange on a field.
pub(crate) enum ExchangeSide {
    /// The grid stays.
    Plain(Exchange),
    Source(RegridSource),
    Target(RegridTarget),
}

/// Offers the piece of an array that `rank` has in `layout`: `bytes` bytes at `data`, which are copied.
/// Every rank calls it with the same attributes, and the array becomes visible with its last piece;
/// consumers receive it in a layout of their own. `type` is that of the elements: "f4", "f8", "i4", "i8",
/// "u1", "c8", ... Blocks for one round trip.
///
/// Options: those of jct_offer, and epoch=N, which distinguishes versions of one key. Errors: those of
/// jct_offer; JCT_INVALID_ARGUMENT where `bytes` is not what the rank has (see jct_layout_elements);
/// JCT_CONFLICT where ranks have different layouts, JCT_ALREADY_EXISTS where the array is complete in another
/// one.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a function of C")]
pub unsafe extern "C" fn jct_offer_piece(
    pool: *const PoolHandle,
    layout: *const LayoutHandle,
    rank: u64,
    r#type: *const c_char,
    attributes: *const AttributesHandle,
    data: *const c_void,
    bytes: usize,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (pool, layout) = (pool::of(pool)?, handle::shared(layout)?);
            let (piece, options) = given_piece(layout, rank, r#type, options)?;
            let payload = read_bytes("data", data, bytes)?;
            attributes::lend(attributes, |given| {
                pool.offer_piece_with(&piece, given.iter().copied(), payload, options)
            })
        }
    })
}

/// Offers the piece of an array that `rank` has in `layout` into a bundle with a path, which every rank
/// opens. The array is one member: it becomes visible with the other members, when it has all its pieces.
/// Returns when the piece is staged; its bytes are copied. Options and other arguments: those of
/// jct_offer_piece.
///
/// Errors: those of jct_offer_piece and jct_bundle_offer; JCT_INVALID_ARGUMENT for a bundle without a path.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a function of C")]
pub unsafe extern "C" fn jct_bundle_offer_piece(
    bundle: *const BundleHandle,
    layout: *const LayoutHandle,
    rank: u64,
    r#type: *const c_char,
    attributes: *const AttributesHandle,
    data: *const c_void,
    bytes: usize,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (bundle, layout) = (handle::shared(bundle)?, handle::shared(layout)?);
            let (piece, options) = given_piece(layout, rank, r#type, options)?;
            let payload = read_bytes("data", data, bytes)?;
            attributes::lend(attributes, |given| {
                bundle.offer_piece_with(&piece, given.iter().copied(), payload, options)
            })
        }
    })
}

/// Reads the type and the options of a piece.
///
/// # Safety
/// The texts are NULL, or end with NUL and live as long as the result.
unsafe fn given_piece(
    layout: &Arc<Layout>,
    rank: u64,
    r#type: *const c_char,
    options: *const c_char,
) -> Result<(ArrayPiece<'_>, OfferOptions<'_>)> {
    // SAFETY: promised by the caller.
    let (element, mut words) = unsafe { (element(r#type)?, OptionWords::read(options)?) };
    let (epoch, options) = (words.number("epoch")?, offer_words(&mut words)?);
    words.finish()?;
    let piece = ArrayPiece {
        epoch,
        ..ArrayPiece::new(layout, element, rank)
    };
    Ok((piece, options))
}

/// Receives the part of an array that `rank` has in `layout`, in any layout of its producers: copies
/// it to `bytes` bytes at `data`. The attributes are those of the array's key. Elements are converted to
/// `type` where it differs. Also of an object that is an array by itself. Blocks until all pieces are
/// offered, for at most `timeout` seconds. Gaps of the layout are not written.
///
/// Options: schema=NAME. Errors: those of jct_demand_key, where the cause of JCT_TIMEOUT names the ranks
/// that are missing; JCT_INVALID_ARGUMENT where the layouts do not fit or `bytes` is not what the rank has;
/// JCT_UNSUPPORTED for a conversion.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a function of C")]
pub unsafe extern "C" fn jct_demand_array(
    pool: *const PoolHandle,
    attributes: *const AttributesHandle,
    layout: *const LayoutHandle,
    rank: u64,
    r#type: *const c_char,
    data: *mut c_void,
    bytes: usize,
    options: *const c_char,
    timeout: f64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (pool, layout) = (pool::of(pool)?, handle::shared(layout)?);
            let mut words = OptionWords::read(options)?;
            let schema = words.text("schema")?;
            words.finish()?;
            let part = ArrayPart {
                element: Some(element(r#type)?),
                ..ArrayPart::of(layout, rank)
            };
            let (mine, timeout) = (bytes_mut("data", data, bytes)?, read_timeout(timeout)?);
            attributes::lend(attributes, |given| {
                let key = Target::key(given.iter().copied());
                let key = schema.into_iter().fold(key, Target::in_schema);
                pool.demand_array(key, timeout)?.take_into(&part, mine, 1)
            })
        }
    })
}

/// Opens an exchange: states once what stays the same with every step, for `rank` in `layout`. `common`,
/// which may be NULL, are attributes of every array; they are copied. `type` as in jct_offer_piece. Does
/// not block. Close it with jct_exchange_close.
///
/// Options: schema=NAME, retention=... as in jct_offer. Errors: JCT_INVALID_ARGUMENT where there is no such
/// rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_exchange_open(
    pool: *const PoolHandle,
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
                let (pool, layout, element) = (pool::of(pool)?, handle::shared(layout)?, element(r#type)?);
                let mut words = OptionWords::read(options)?;
                let change = exchange_options(&mut words)?;
                words.finish()?;
                let exchange = change(Exchange::new(pool, layout, rank, element)?);
                let common = attributes::given(common)?.cloned().unwrap_or_default();
                Ok(OpenExchange::new(ExchangeSide::Plain(exchange), common))
            })
        }
    })
}

/// Reads `schema` and `retention`, as a change to an exchange.
pub(crate) fn exchange_options<'w>(words: &mut OptionWords<'w>) -> Result<impl FnOnce(Exchange) -> Exchange + use<'w>> {
    let (schema, retention) = (words.text("schema")?, words.parsed("retention")?);
    Ok(move |mut exchange: Exchange| {
        if let Some(name) = schema {
            exchange = exchange.schema(name);
        }
        if let Some(retention) = retention {
            exchange = exchange.retention(retention);
        }
        exchange
    })
}

/// Offers the rank's piece of the array that has the common attributes and these, which may be NULL. The
/// bytes are copied. Blocks for one round trip. Errors: those of jct_offer_piece; JCT_INVALID_ARGUMENT for the
/// target's side of an exchange between two grids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_exchange_put(
    exchange: *mut ExchangeHandle,
    attributes: *const AttributesHandle,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (open, mine) = (handle::exclusive(exchange)?, read_bytes("data", data, bytes)?);
            let all = open.all(attributes::given(attributes)?);
            all.lend(|given| match &mut open.side {
                ExchangeSide::Plain(exchange) => exchange.put(given.iter().copied(), mine),
                ExchangeSide::Source(source) => source.put(given.iter().copied(), mine),
                ExchangeSide::Target(_) => Err(other_side("the target's side receives: use jct_exchange_get")),
            })
        }
    })
}

/// Receives the rank's part of the array whose key has the common attributes and these, which may be NULL,
/// into `bytes` bytes at `data`. Blocks until all pieces are offered, for at most `timeout` seconds.
/// Errors: those of jct_demand_array; of an exchange between two grids also JCT_CONFLICT, and
/// JCT_INVALID_ARGUMENT for the source's side.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_exchange_get(
    exchange: *mut ExchangeHandle,
    attributes: *const AttributesHandle,
    timeout: f64,
    data: *mut c_void,
    bytes: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (open, mine) = (handle::exclusive(exchange)?, bytes_mut("data", data, bytes)?);
            let timeout = read_timeout(timeout)?;
            let all = open.all(attributes::given(attributes)?);
            all.lend(|given| match &mut open.side {
                ExchangeSide::Plain(exchange) => exchange.get_into(given.iter().copied(), timeout, mine),
                ExchangeSide::Target(target) => target.get_into(given.iter().copied(), timeout, mine),
                ExchangeSide::Source(_) => Err(other_side("the source's side offers: use jct_exchange_put")),
            })
        }
    })
}

fn other_side(cause: &str) -> Error {
    Error::new(Code::InvalidArgument, "exchange", cause)
}

impl OpenExchange {
    pub(crate) fn new(side: ExchangeSide, common: AttributeSet) -> Self {
        Self { side, common }
    }

    fn all(&self, given: Option<&AttributeSet>) -> AttributeSet {
        given.map_or_else(|| self.common.clone(), |given| self.common.with(given))
    }
}

/// Closes an exchange. NULL has no effect. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_exchange_close(exchange: *mut ExchangeHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(exchange) }.map(drop));
}

/// Reads the type of elements.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn element(name: *const c_char) -> Result<Element> {
    // SAFETY: the caller of the exported function guarantees the arguments.
    unsafe { text("type", name) }?.parse()
}
