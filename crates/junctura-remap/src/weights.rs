//! The matrix of weights, and its application to a field.

use std::ops::Range;

use junctura_model::{Code, Error, Result};

use crate::links::{LinkRows, WeightLink, invalid};
use crate::{DIMENSIONS_MAX, POINTS_MAX};

/// The treatment of partly covered cells, with the names of couplers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NormalizeBy {
    /// A target point one of whose sources is missing is missing; the others are the weighted sums.
    #[default]
    Whole,
    /// A missing value adds nothing: a mean over the whole area of the target cell (`destarea`). Conserves amounts.
    Destination,
    /// Divided by the weights of present values: a mean over the covered part of the target cell (`fracarea`). Keeps
    /// values.
    Fraction,
}

/// Options for applying weights to a field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApplyOptions {
    /// The value of target points with missing sources.
    pub norm: NormalizeBy,
    /// The value that means "missing", besides NaN, in the source; target points without a source get it, else NaN.
    pub missing: Option<f64>,
}

/// Known properties of the cells of a grid, besides their number; each list is empty where it is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GridCells {
    /// Areas, in any unit, the same for both grids.
    pub areas: Vec<f64>,
    /// The active fraction of a cell, 0 to 1.
    pub fractions: Vec<f64>,
    /// The active cells.
    pub mask: Vec<bool>,
}

/// Weights from one grid to another.
///
/// ```
/// use junctura_remap::{ApplyOptions, WeightLink, NormalizeBy, Weights};
///
/// # fn main() -> junctura_model::Result<()> {
/// // Means of two points each.
/// let links = [(0, 0), (0, 1), (1, 2), (1, 3)].map(|(target, source)| WeightLink { target, source, weight: 0.5 });
/// let means = Weights::new(&links, &[4], &[2])?;
/// let mut found = [0.0; 2];
/// let how = ApplyOptions { norm: NormalizeBy::Fraction, ..ApplyOptions::default() };
/// means.apply(&[1.0, 2.0, 3.0, f64::NAN], 0..2, &mut found, how)?;
/// assert_eq!(found, [1.5, 3.0]);
///
/// // A rank with the second target point alone needs two source points.
/// let (part, stretches) = means.part(1..2)?;
/// assert_eq!((part.sources(), stretches[0].clone()), (2, 2..4));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub(crate) rows: LinkRows,
    pub(crate) shapes: [Vec<u64>; 2],
    pub(crate) cells: [GridCells; 2],
    /// The divisor of the weights of a target cell: its area, or the covered part.
    pub(crate) are_by_fraction: bool,
}

impl ApplyOptions {
    pub(crate) fn is_missing(self, value: f64) -> bool {
        value.is_nan() || self.missing == Some(value)
    }
}

impl Weights {
    /// Makes weights from links in any order, between grids of these shapes. Links between the same points are added.
    ///
    /// # Errors
    /// `InvalidArgument` that names the invalid shape or link; `LimitExceeded` for too many points or links.
    pub fn new(links: &[WeightLink], source_shape: &[u64], target_shape: &[u64]) -> Result<Self> {
        let (sources, targets) = (points("source", source_shape)?, points("target", target_shape)?);
        Ok(Self {
            rows: LinkRows::of(links, sources, targets)?,
            shapes: [source_shape.to_vec(), target_shape.to_vec()],
            cells: [GridCells::default(), GridCells::default()],
            are_by_fraction: false,
        })
    }

    /// Adds known properties of the cells of both grids. Links of cells that a mask excludes are removed.
    ///
    /// # Errors
    /// `InvalidArgument` that names a list that is not as long as its grid, or an impossible number in it.
    pub fn with_cells(mut self, source: GridCells, target: GridCells) -> Result<Self> {
        check_cells("source", &source, self.sources())?;
        check_cells("target", &target, self.targets())?;
        if !source.mask.is_empty() || !target.mask.is_empty() {
            let takes_part = |mask: &[bool], cell: usize| mask.get(cell).copied().unwrap_or(true);
            self.rows = self
                .rows
                .kept(|row, column| takes_part(&target.mask, row) && takes_part(&source.mask, column as usize));
        }
        self.cells = [source, target];
        Ok(self)
    }

    /// Declares that the weights of each target cell were divided by its covered part, not by its area.
    #[must_use]
    pub fn by_fraction(mut self, are_by_fraction: bool) -> Self {
        self.are_by_fraction = are_by_fraction;
        self
    }

    /// Returns the number of source points.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.shapes[0].iter().product::<u64>() as usize
    }

    /// Returns the number of target points.
    #[must_use]
    pub fn targets(&self) -> usize {
        self.rows.starts.len() - 1
    }

    /// Returns the shape of the source.
    #[must_use]
    pub fn source_shape(&self) -> &[u64] {
        &self.shapes[0]
    }

    /// Returns the shape of the target.
    #[must_use]
    pub fn target_shape(&self) -> &[u64] {
        &self.shapes[1]
    }

    /// Returns the number of links.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.sources.len()
    }

    /// Whether there are no links.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether weights were divided by the covered part of a target cell.
    #[must_use]
    pub fn is_by_fraction(&self) -> bool {
        self.are_by_fraction
    }

    /// Returns the known properties of the cells of the source, and of the target.
    #[must_use]
    pub fn cells(&self) -> (&GridCells, &GridCells) {
        (&self.cells[0], &self.cells[1])
    }

    /// Iterates over all links, by target and then by source.
    pub fn links(&self) -> impl Iterator<Item = WeightLink> + '_ {
        (0..self.targets()).flat_map(|row| {
            let (sources, weights) = self.rows.row(row);
            sources.iter().zip(weights).map(move |(&source, &weight)| WeightLink {
                target: row as u64,
                source: u64::from(source),
                weight,
            })
        })
    }

    /// Computes the field at some target points, from the whole source. Each point is summed separately, by source: the
    /// bits are the same for any split of the target.
    ///
    /// # Errors
    /// `InvalidArgument` when the field, the points or the room for them do not fit the grids.
    pub fn apply(&self, source: &[f64], rows: Range<usize>, into: &mut [f64], how: ApplyOptions) -> Result<()> {
        if source.len() != self.sources() {
            let cause = format!(
                "the field has {} values, and the grid {} points",
                source.len(),
                self.sources()
            );
            return Err(invalid(cause));
        }
        if rows.start > rows.end || rows.end > self.targets() || rows.len() != into.len() {
            let cause = format!(
                "target points {}..{} of {}, into {} values",
                rows.start,
                rows.end,
                self.targets(),
                into.len()
            );
            return Err(invalid(cause));
        }
        if how.missing.is_none() && how.norm != NormalizeBy::Fraction {
            // NaN stays NaN in a sum: only such a sum is examined.
            self.rows.sums(source, rows, into, |row| self.at(source, row, how));
        } else {
            for (row, value) in rows.zip(into) {
                *value = self.at(source, row, how);
            }
        }
        Ok(())
    }

    fn at(&self, source: &[f64], row: usize, how: ApplyOptions) -> f64 {
        let missing = how.missing.unwrap_or(f64::NAN);
        let sum = self.sum(source, row, how);
        if sum.links == 0 || (how.norm == NormalizeBy::Whole && !sum.is_whole) {
            return missing;
        }
        match how.norm {
            NormalizeBy::Fraction if sum.weight == 0.0 => missing,
            NormalizeBy::Fraction => sum.value / sum.weight,
            NormalizeBy::Whole | NormalizeBy::Destination => sum.value,
        }
    }

    /// Computes one target point.
    pub(crate) fn sum(&self, source: &[f64], row: usize, how: ApplyOptions) -> LinkSum {
        let (sources, weights) = self.rows.row(row);
        let links = || sources.iter().map(|&source| source as usize).zip(weights);
        if how.missing.is_none() {
            // NaN stays NaN in a sum: if the sum is not NaN, no value was missing.
            let (value, weight) = links().fold((0.0, 0.0), |(value, weight), (at, part)| {
                (value + part * source[at], weight + part)
            });
            if !f64::is_nan(value) {
                return LinkSum {
                    value,
                    weight,
                    links: sources.len(),
                    is_whole: true,
                };
            }
        }
        let mut sum = LinkSum {
            value: 0.0,
            weight: 0.0,
            links: 0,
            is_whole: true,
        };
        for (at, part) in links() {
            if how.is_missing(source[at]) {
                sum.is_whole = false;
            } else {
                sum.value += part * source[at];
                sum.weight += part;
                sum.links += 1;
            }
        }
        sum
    }

    /// Returns the source points that some target points need, as ascending ranges that do not touch.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown target points.
    pub fn sources_of(&self, rows: Range<usize>) -> Result<Vec<Range<u64>>> {
        if rows.start > rows.end || rows.end > self.targets() {
            let cause = format!("target points {}..{} of {}", rows.start, rows.end, self.targets());
            return Err(invalid(cause));
        }
        let links = self.rows.starts[rows.start]..self.rows.starts[rows.end];
        let mut sources = self.rows.sources[links].to_vec();
        sources.sort_unstable();
        sources.dedup();
        let stretches = sources.chunk_by(|one, next| one + 1 == *next);
        Ok(stretches
            .map(|stretch| u64::from(stretch[0])..u64::from(stretch[0]) + stretch.len() as u64)
            .collect())
    }

    /// Returns some target points alone, and the source ranges that they need. The part's source consists of these
    /// ranges, one after another; the result has the same bits as the whole.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown target points.
    pub fn part(&self, rows: Range<usize>) -> Result<(Self, Vec<Range<u64>>)> {
        let stretches = self.sources_of(rows.clone())?;
        let mut begins = Vec::with_capacity(stretches.len());
        let mut before = 0;
        for stretch in &stretches {
            begins.push(before);
            before += stretch.end - stretch.start;
        }
        let moved = |source: u32| {
            let at = stretches.partition_point(|stretch| stretch.start <= u64::from(source)) - 1;
            (begins[at] + u64::from(source) - stretches[at].start) as u32
        };
        let starts = &self.rows.starts[rows.start..=rows.end];
        let links = starts[0]..starts[rows.len()];
        let part = Self {
            rows: LinkRows::new(
                starts.iter().map(|start| start - links.start).collect(),
                self.rows.sources[links.clone()].iter().copied().map(moved).collect(),
                self.rows.weights[links].to_vec(),
            ),
            shapes: [vec![before], vec![rows.len() as u64]],
            cells: [
                self.cells[0].of(&stretches),
                self.cells[1].of(std::slice::from_ref(&(rows.start as u64..rows.end as u64))),
            ],
            are_by_fraction: self.are_by_fraction,
        };
        Ok((part, stretches))
    }
}

/// The sum of the links of one target point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSum {
    pub(crate) value: f64,
    pub(crate) weight: f64,
    pub(crate) links: usize,
    /// No value was missing.
    pub(crate) is_whole: bool,
}

impl GridCells {
    /// Returns the properties of the cells in some ranges.
    fn of(&self, stretches: &[Range<u64>]) -> Self {
        fn taken<T: Copy>(of: &[T], stretches: &[Range<u64>]) -> Vec<T> {
            let parts = stretches
                .iter()
                .filter_map(|part| of.get(part.start as usize..part.end as usize));
            parts.flatten().copied().collect()
        }
        Self {
            areas: taken(&self.areas, stretches),
            fractions: taken(&self.fractions, stretches),
            mask: taken(&self.mask, stretches),
        }
    }
}

pub(crate) fn points(side: &str, shape: &[u64]) -> Result<u64> {
    if shape.is_empty() || shape.len() > DIMENSIONS_MAX {
        let cause = format!("the {side} has {} dimensions, not 1 to {DIMENSIONS_MAX}", shape.len());
        return Err(invalid(cause));
    }
    let points = shape
        .iter()
        .try_fold(1_u64, |points, &extent| points.checked_mul(extent));
    points.filter(|&points| points <= POINTS_MAX).ok_or_else(|| {
        let cause = format!("the {side} has more than {POINTS_MAX} points: {shape:?}");
        Error::new(Code::LimitExceeded, "weights", cause)
    })
}

fn check_cells(side: &str, cells: &GridCells, points: usize) -> Result<()> {
    let lists = [
        ("areas", cells.areas.len()),
        ("fractions", cells.fractions.len()),
        ("mask", cells.mask.len()),
    ];
    if let Some((what, length)) = lists.iter().find(|(_, length)| *length != 0 && *length != points) {
        return Err(invalid(format!(
            "the {side} has {points} points, and its {what} {length}"
        )));
    }
    for (what, numbers) in [("area", &cells.areas), ("fraction", &cells.fractions)] {
        let wrong = numbers
            .iter()
            .position(|number| !(number.is_finite() && *number >= 0.0));
        if let Some(at) = wrong {
            return Err(invalid(format!("{what} {at} of the {side} is {}", numbers[at])));
        }
    }
    Ok(())
}
