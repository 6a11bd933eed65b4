//! Coupled exchanges: ranks of a source grid put a field, and ranks of a target grid get it on theirs.
//!
//! ```text
//!   RegridSource (rank of the source) ── put ──► sums, and values that others sum ──► get ── RegridTarget (rank of the target)
//! ```
//! Both sides derive from the weights and the layout of the source which values travel ([`remap::CarriedPlan`]); these are a list of numbers,
//! exchanged as any other array. Each rank appends a fingerprint of weights, layout and options to its values, which the receiver
//! compares.

mod numbers;
mod points;
mod received;
mod sent;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use junctura_layout::{Axis, Distribution, Element, ElementKind, Layout, Order};
use junctura_model::{Code, Error, Result};
use junctura_remap::{ApplyOptions, ApplySide, CarriedPlan, HEADER_BYTES, Weights};

pub use received::RegridTarget;
pub use sent::RegridSource;

/// Terms of a coupled exchange that both sides state, equal on every rank.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::remap::{WeightLink, Weights};
/// # use junctura::{Layout, Pool, RegridSource, RegridTarget, RegridTerms};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// // Means of two points each, from a grid of 8 points on 2 ranks to one of 4 points.
/// let links = (0..8).map(|at| WeightLink { target: at / 2, source: at, weight: 0.5 });
/// let weights = Weights::new(&links.collect::<Vec<_>>(), &[8], &[4])?;
/// let source: Arc<Layout> = Arc::new("shape=8 grid=2".parse()?);
/// let terms = RegridTerms::new(&weights, &source);
///
/// let element = "f8".parse()?;
/// for rank in 0..2 {
///     let mut side = RegridSource::new(&pool, &terms, rank, element)?;
///     let mine: Vec<u8> = (0..4).flat_map(|at| f64::from(4 * rank as u32 + at).to_ne_bytes()).collect();
///     side.put([("name", "sst")], &mine)?;
/// }
///
/// let target: Arc<Layout> = Arc::new("shape=4".parse()?);
/// let mut side = RegridTarget::new(&pool, &terms, &target, 0, element)?;
/// let mut mine = [0; 32];
/// side.get_into([("name", "sst")], None, &mut mine)?;
/// assert_eq!(mine, [0.5_f64, 2.5, 4.5, 6.5].map(f64::to_ne_bytes).concat()[..]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RegridTerms<'t> {
    /// The weights.
    pub weights: &'t Weights,
    /// The layout of the source over its ranks. Its shape is that of the weights' source in row-major order, and the reverse in
    /// column-major order; or one dimension with all points.
    pub source: &'t Arc<Layout>,
    /// The value of target points with missing sources.
    pub how: ApplyOptions,
    /// Where sums are made.
    pub side: ApplySide,
}

impl<'t> RegridTerms<'t> {
    /// Terms with the default options: whole sums, made where fewer values travel.
    #[must_use]
    pub fn new(weights: &'t Weights, source: &'t Arc<Layout>) -> Self {
        Self {
            weights,
            source,
            how: ApplyOptions::default(),
            side: ApplySide::default(),
        }
    }
}

/// Reads a file of weights in the binary format: see `docs/formats/weights.md`.
///
/// ```
/// # use junctura::remap::{WeightLink, Weights};
/// # use junctura::read_weights;
/// # fn main() -> junctura::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("halves.weights");
/// let links = [0, 1].map(|source| WeightLink { target: 0, source, weight: 0.5 });
/// let weights = Weights::new(&links, &[2], &[1])?;
/// std::fs::write(&path, weights.encode()).expect("a folder of our own");
/// assert_eq!(read_weights(&path)?, weights);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `NotFound` and `Io` for a file that cannot be read; those of [`Weights::decode`], with the path as the subject.
pub fn read_weights(path: impl AsRef<Path>) -> Result<Weights> {
    let path = path.as_ref();
    let subject = path.display().to_string();
    let failed = |error: std::io::Error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound {
            Code::NotFound
        } else {
            Code::Io
        };
        Error::new(code, subject.clone(), error.to_string())
    };
    let about = |error: Error| Error::new(error.code(), subject.clone(), error.cause());
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    (&mut file)
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let stated = Weights::encoded_length(&bytes).map_err(about)?;
    if stated != length {
        let cause = format!("{length} bytes, and the header states {stated}");
        return Err(Error::new(Code::Corrupt, subject, cause));
    }
    file.take(length - bytes.len() as u64)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Weights::decode(&bytes).map_err(about)
}

/// Regrids a whole field in one process: elements of the source grid to those of the target grid, both `f4` or `f8`.
///
/// ```
/// # use junctura::remap::{ApplyOptions, WeightLink, Weights};
/// # use junctura::regrid_field;
/// # fn main() -> junctura::Result<()> {
/// let links = [0, 1].map(|source| WeightLink { target: 0, source, weight: 0.5 });
/// let weights = Weights::new(&links, &[2], &[1])?;
/// let source: Vec<u8> = [1.0_f64, 3.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
/// let mut target = [0; 8];
/// regrid_field(&weights, "f8".parse()?, &source, &mut target, ApplyOptions::default())?;
/// assert_eq!(f64::from_ne_bytes(target), 2.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `InvalidArgument` where the memory has another length than the grids; `Unsupported` for other elements.
pub fn regrid_field(
    weights: &Weights,
    element: Element,
    source: &[u8],
    target: &mut [u8],
    how: ApplyOptions,
) -> Result<()> {
    let how = rounded(how, element)?;
    let width = element.kind.bytes();
    for (side, bytes, points) in [
        ("source", source.len(), weights.sources()),
        ("target", target.len(), weights.targets()),
    ] {
        if Some(bytes) != points.checked_mul(width) {
            return Err(invalid(format!(
                "{bytes} bytes, and the {side} has {points} points of {element}"
            )));
        }
    }
    let mut values = vec![0.0; weights.targets()];
    weights.apply(
        &numbers::doubles(source, element),
        0..weights.targets(),
        &mut values,
        how,
    )?;
    numbers::write(&values, element, target);
    Ok(())
}

/// The plan of an exchange, and the layout of the list of its values over ranks of the source.
struct CarriedList {
    plan: CarriedPlan,
    layout: Arc<Layout>,
    fingerprint: f64,
    how: ApplyOptions,
}

impl CarriedList {
    fn new(terms: &RegridTerms<'_>, element: Element) -> Result<Self> {
        let how = rounded(terms.how, element)?;
        let owners = points::owners(terms.source, terms.weights.source_shape())?;
        let ranks = u32::try_from(terms.source.ranks()).map_err(|_| invalid("the source has too many ranks"))?;
        let plan = CarriedPlan::new(terms.weights, owners, ranks, terms.side)?;
        let mut cuts: Vec<u64> = (0..ranks as usize)
            .map(|rank| plan.positions(rank).start + rank as u64)
            .collect();
        let length = plan.values() + u64::from(ranks);
        cuts.push(length);
        let distribution = Distribution::Grid {
            axes: vec![Axis::Cuts(cuts)],
            ranks: Order::C,
        };
        Ok(Self {
            layout: Arc::new(Layout::new([length], distribution)?),
            fingerprint: f64::from(plan.fingerprint(terms.weights, how)),
            plan,
            how,
        })
    }
}

/// The missing value in the precision of the elements: 1e20 in single precision is not the double 1e20.
fn rounded(how: ApplyOptions, element: Element) -> Result<ApplyOptions> {
    if element == ElementKind::F64.into() {
        return Ok(how);
    }
    if element != ElementKind::F32.into() {
        let cause = format!("elements are f4 or f8 of this machine, not {element}");
        return Err(Error::new(Code::Unsupported, "regrid", cause));
    }
    Ok(ApplyOptions {
        missing: how.missing.map(|missing| f64::from(missing as f32)),
        ..how
    })
}

fn invalid(cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, "regrid", cause)
}
