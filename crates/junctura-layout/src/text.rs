//! A layout as a line of text.
//!
//! ```text
//!   shape=8192x8192 grid=4x2 block=256x256 order=C
//!   shape=100x60 cuts=0,30,100x* grid=2x3 block=1x4 offset=0x2 ranks=F order=F storage=packed
//!   shape=10x10 slabs=0:5x0:10;5:10x0:4,5:10x4:10
//! ```
//! | name | means | if it is not there |
//! |---|---|---|
//! | `shape` | indices of each dimension | |
//! | `grid` | ranks of each dimension | 1 |
//! | `block` | indices of a block | as many as give each rank one block |
//! | `offset` | indices of the first cycle that the array does not have | 0 |
//! | `cuts` | where each rank begins, from 0 to the end; `*` for a dimension that has blocks | |
//! | `slabs` | `from:to` of each dimension; `,` between those of a rank, `;` between ranks | |
//! | `ranks` | how ranks are numbered over the grid, `C` or `F` | `C` |
//! | `order` | how elements are stored, `C` (row-major) or `F` (column-major) | `C` |
//! | `storage` | `dense`, `packed`: block behind block, each with the room of a whole one | `dense` |
//! | `strides` | elements from one index to the next, the same for all ranks | |

use std::fmt;
use std::str::FromStr;

use junctura_model::{Code, Error, Result};

use crate::{Axis, Distribution, Layout, Order, Slab, Storage};

/// The maximum length of a text.
const TEXT_BYTES_MAX: usize = 16 << 20;

pub(crate) const NAMES: [&str; 10] = [
    "shape", "grid", "block", "offset", "cuts", "slabs", "ranks", "order", "storage", "strides",
];

/// The contents of a text or a file, before it is a layout.
#[derive(Debug, Default)]
pub(crate) struct LayoutParts {
    pub(crate) shape: Option<Vec<u64>>,
    pub(crate) grid: Option<Vec<u64>>,
    pub(crate) block: Option<Vec<u64>>,
    pub(crate) offset: Option<Vec<u64>>,
    pub(crate) cuts: Option<Vec<Option<Vec<u64>>>>,
    pub(crate) slabs: Option<Vec<Vec<Slab>>>,
    pub(crate) ranks: Option<Order>,
    pub(crate) order: Option<Order>,
    pub(crate) is_packed: Option<bool>,
    pub(crate) strides: Option<Vec<u64>>,
}

fn wrong(what: &str, cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, what, cause)
}

fn number(what: &str, text: &str) -> Result<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let cause = if text.starts_with('-') {
        format!("{text} is negative")
    } else if is_digits {
        format!("{text} is too large")
    } else {
        format!("'{text}' is not a whole number")
    };
    let number = text.parse().ok().filter(|_| is_digits);
    // Whatever is made of two such still has room.
    number
        .filter(|&number: &u64| number <= crate::ELEMENTS_MAX)
        .ok_or_else(|| wrong(what, cause))
}

fn order(what: &str, text: &str) -> Result<Order> {
    match text {
        "C" | "c" | "row" => Ok(Order::C),
        "F" | "f" | "column" => Ok(Order::F),
        _ => Err(wrong(
            what,
            format!("'{text}' is neither C (row-major) nor F (column-major)"),
        )),
    }
}

fn is_packed(text: &str) -> Result<bool> {
    match text {
        "dense" => Ok(false),
        "packed" => Ok(true),
        _ => Err(wrong("storage", format!("'{text}' is neither dense nor packed"))),
    }
}

fn numbers(what: &str, text: &str) -> Result<Vec<u64>> {
    let all: Result<Vec<u64>> = text.split('x').map(|text| number(what, text)).collect();
    all.map_err(|error| {
        wrong(
            what,
            format!("{}; an x separates the dimensions, as in {what}=4x2", error.cause()),
        )
    })
}

fn cuts(text: &str) -> Result<Vec<Option<Vec<u64>>>> {
    let dimension = |text: &str| match text {
        "*" => Ok(None),
        text => text
            .split(',')
            .map(|text| number("cuts", text))
            .collect::<Result<_>>()
            .map(Some),
    };
    text.split('x').map(dimension).collect()
}

fn slab(text: &str) -> Result<Slab> {
    let dimensions = text.split('x').count();
    let (mut start, mut stop) = (Vec::with_capacity(dimensions), Vec::with_capacity(dimensions));
    for range in text.split('x') {
        let bounds = range.split_once(':');
        let (from, to) = bounds.ok_or_else(|| wrong("slabs", format!("'{range}' is not FROM:TO")))?;
        start.push(number("slabs", from)?);
        stop.push(number("slabs", to)?);
    }
    Slab::new(start, stop)
}

fn slabs(text: &str) -> Result<Vec<Vec<Slab>>> {
    let rank = |text: &str| match text {
        "" => Ok(Vec::new()),
        text => each_of(text, ',', slab),
    };
    each_of(text, ';', rank)
}

/// Parses each part of a text, without extra memory for very many.
fn each_of<T>(text: &str, separator: char, read: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let mut all = Vec::with_capacity(text.split(separator).count());
    for part in text.split(separator) {
        all.push(read(part)?);
    }
    Ok(all)
}

impl LayoutParts {
    pub(crate) fn read(&mut self, name: &str, text: &str) -> Result<()> {
        match name {
            "shape" => self.shape = Some(numbers(name, text)?),
            "grid" => self.grid = Some(numbers(name, text)?),
            "block" => self.block = Some(numbers(name, text)?),
            "offset" => self.offset = Some(numbers(name, text)?),
            "cuts" => self.cuts = Some(cuts(text)?),
            "slabs" => self.slabs = Some(slabs(text)?),
            "ranks" => self.ranks = Some(order(name, text)?),
            "order" => self.order = Some(order(name, text)?),
            "storage" => self.is_packed = Some(is_packed(text)?),
            "strides" => self.strides = Some(numbers(name, text)?),
            _ => {
                let known = NAMES.join(", ");
                return Err(wrong("layout", format!("unknown name '{name}'; valid names: {known}")));
            }
        }
        Ok(())
    }

    pub(crate) fn layout(mut self) -> Result<Layout> {
        let shape = self.shape.clone().ok_or_else(|| wrong("shape", "it is missing"))?;
        let storage = match (self.is_packed, &self.strides) {
            (Some(true), Some(_)) => return Err(wrong("strides", "packed blocks have none")),
            (Some(true), None) => Storage::Packed,
            (_, Some(strides)) => Storage::Strided(strides.clone()),
            _ => Storage::Dense,
        };
        let order = self.order.unwrap_or_default();
        let layout = match self.slabs.take() {
            Some(slabs) => {
                let grid = [
                    ("grid", self.grid.is_some()),
                    ("block", self.block.is_some()),
                    ("cuts", self.cuts.is_some()),
                ];
                let others = [("offset", self.offset.is_some()), ("ranks", self.ranks.is_some())];
                if let Some((name, _)) = grid.iter().chain(&others).find(|(_, is_there)| *is_there) {
                    return Err(wrong(name, "slabs have none"));
                }
                Layout::slabs(&shape, slabs)?
            }
            None => Layout::new(shape.clone(), self.grid(&shape)?)?,
        };
        layout.stored(order, storage)
    }

    fn grid(self, shape: &[u64]) -> Result<Distribution> {
        let dimensions = shape.len();
        let lengths = [
            ("grid", self.grid.as_ref().map(Vec::len)),
            ("block", self.block.as_ref().map(Vec::len)),
            ("offset", self.offset.as_ref().map(Vec::len)),
            ("cuts", self.cuts.as_ref().map(Vec::len)),
        ];
        for (name, length) in lengths {
            if let Some(length) = length.filter(|&length| length != dimensions) {
                return Err(wrong(name, format!("{length} for {dimensions} dimensions")));
            }
        }
        let at = |list: &Option<Vec<u64>>, dimension: usize| list.as_ref().map(|list| list[dimension]);
        let axis = |(dimension, &extent): (usize, &u64)| {
            let cuts = self.cuts.as_ref().and_then(|cuts| cuts[dimension].clone());
            let parts = at(&self.grid, dimension);
            if let Some(cuts) = cuts {
                let said = (cuts.len() as u64).saturating_sub(1);
                return match parts.filter(|&parts| parts != said) {
                    Some(parts) => Err(wrong("cuts", format!("{said} parts, but the grid has {parts}"))),
                    None => Ok(Axis::Cuts(cuts)),
                };
            }
            let parts = parts.unwrap_or(1);
            let one_each = extent.div_ceil(parts.max(1)).max(1);
            Ok(Axis::Cyclic {
                parts,
                block: at(&self.block, dimension).unwrap_or(one_each),
                offset: at(&self.offset, dimension).unwrap_or(0),
            })
        };
        Ok(Distribution::Grid {
            axes: shape.iter().enumerate().map(axis).collect::<Result<_>>()?,
            ranks: self.ranks.unwrap_or_default(),
        })
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// Parses the text form; see `docs/formats/layout.md`.
    ///
    /// # Errors
    /// `InvalidArgument`, whose subject is the invalid name; as [`Layout::new`].
    fn from_str(text: &str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::new(
                Code::LimitExceeded,
                "layout",
                format!("more than {TEXT_BYTES_MAX} bytes"),
            ));
        }
        let mut parts = LayoutParts::default();
        let mut seen = Vec::new();
        for word in text.split_whitespace() {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| wrong("layout", format!("'{word}' is not NAME=VALUE")))?;
            if seen.contains(&name) {
                return Err(wrong("layout", format!("'{name}' is given twice")));
            }
            seen.push(name);
            parts.read(name, value)?;
        }
        parts.layout()
    }
}

/// Joins items with a separator.
fn join<T: fmt::Display>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    texts.join(between)
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::C => "C",
            Self::F => "F",
        })
    }
}

impl fmt::Display for Layout {
    /// Prints the text form, which is unique for a layout.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "shape={}", join(self.shape(), "x"))?;
        match self.distribution() {
            Distribution::Grid { axes, ranks } => {
                write!(formatter, " grid={}", join(axes.iter().map(Axis::parts), "x"))?;
                write!(
                    formatter,
                    " block={}",
                    join(axes.iter().map(block_and_offset).map(|(block, _)| block), "x")
                )?;
                if axes.iter().any(|axis| block_and_offset(axis).1 > 0) {
                    write!(
                        formatter,
                        " offset={}",
                        join(axes.iter().map(block_and_offset).map(|(_, offset)| offset), "x")
                    )?;
                }
                if axes.iter().any(|axis| matches!(axis, Axis::Cuts(_))) {
                    let cuts = axes.iter().map(|axis| match axis {
                        Axis::Cuts(cuts) => join(cuts, ","),
                        Axis::Cyclic { .. } => "*".to_owned(),
                    });
                    write!(formatter, " cuts={}", join(cuts, "x"))?;
                }
                if *ranks == Order::F {
                    write!(formatter, " ranks=F")?;
                }
            }
            Distribution::Slabs(slabs) => {
                let ranks = slabs.ranks().iter().map(|slabs| join(slabs, ","));
                write!(formatter, " slabs={}", join(ranks, ";"))?;
            }
        }
        write!(formatter, " order={}", self.order())?;
        match self.storage() {
            Storage::Dense => Ok(()),
            Storage::Packed => write!(formatter, " storage=packed"),
            Storage::Strided(strides) => write!(formatter, " strides={}", join(strides, "x")),
        }
    }
}

fn block_and_offset(axis: &Axis) -> (u64, u64) {
    match axis {
        Axis::Cyclic { block, offset, .. } => (*block, *offset),
        Axis::Cuts(_) => (1, 0),
    }
}
