//! Weights as bytes: the format of `docs/formats/weights.md`, which programs without netCDF read.
//!
//! The header states every length, and is checked before memory is allocated.

use junctura_model::{Code, Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::links::LinkRows;
use crate::weights::{GridCells, Weights, points};
use crate::{DIMENSIONS_MAX, LINKS_MAX};

/// The first bytes of a file of weights.
pub const MAGIC: [u8; 8] = *b"JCTWGHTS";
/// The length of the header.
pub const HEADER_BYTES: usize = 176;
const VERSION: u32 = 1;
const FLAGS: u32 = 0x7f;
/// The position of the checksum, which covers the bytes before and after it.
const CHECKSUM: std::ops::Range<usize> = 24..32;

/// The fields of the header.
struct WeightsHeader {
    flags: u32,
    bytes: u64,
    links: usize,
    shapes: [Vec<u64>; 2],
    counts: [u64; 2],
}

impl Weights {
    /// Returns the weights as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let rows = &self.rows;
        let mut bytes = self.header();
        let counts = rows.starts.windows(2).map(|pair| (pair[1] - pair[0]) as u32);
        push(&mut bytes, counts.map(u32::to_le_bytes));
        push(&mut bytes, rows.sources.iter().map(|source| source.to_le_bytes()));
        push(&mut bytes, rows.weights.iter().map(|weight| weight.to_le_bytes()));
        for cells in &self.cells {
            push(&mut bytes, cells.areas.iter().map(|area| area.to_le_bytes()));
            push(&mut bytes, cells.fractions.iter().map(|part| part.to_le_bytes()));
            push(&mut bytes, cells.mask.iter().map(|&takes_part| [u8::from(takes_part)]));
        }
        let length = (bytes.len() as u64).to_le_bytes();
        bytes[16..24].copy_from_slice(&length);
        let sum = checksum(&bytes).to_le_bytes();
        bytes[CHECKSUM].copy_from_slice(&sum);
        bytes
    }

    /// Returns the header, without length and checksum.
    fn header(&self) -> Vec<u8> {
        let lists = self.cells.iter().flat_map(|cells| {
            [
                !cells.areas.is_empty(),
                !cells.fractions.is_empty(),
                !cells.mask.is_empty(),
            ]
        });
        let flags = [self.are_by_fraction].into_iter().chain(lists).enumerate();
        let flags = flags.fold(0, |all, (bit, is_set)| all | u32::from(is_set) << bit);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.resize(CHECKSUM.end, 0);
        bytes.extend((self.len() as u64).to_le_bytes());
        let shapes = [self.source_shape(), self.target_shape()];
        for shape in shapes {
            bytes.extend((shape.len() as u32).to_le_bytes());
        }
        for shape in shapes {
            let unused = std::iter::repeat_n(&0, DIMENSIONS_MAX - shape.len());
            for extent in shape.iter().chain(unused) {
                bytes.extend(extent.to_le_bytes());
            }
        }
        bytes
    }

    /// Returns the length of a whole file, from its first [`HEADER_BYTES`] bytes; a reader compares it with that of the
    /// file before it reads the rest.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are no header, or contradict themselves; `Unsupported` for another version;
    /// `LimitExceeded` for too many points or links.
    pub fn encoded_length(header: &[u8]) -> Result<u64> {
        WeightsHeader::read(header).map(|header| header.bytes)
    }

    /// Decodes weights from the bytes of a whole file.
    ///
    /// # Errors
    /// As [`Weights::encoded_length`]; `Corrupt` for another length or checksum, links out of order or to unknown
    /// points, and impossible numbers.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let header = WeightsHeader::read(bytes)?;
        if header.bytes != bytes.len() as u64 {
            let cause = format!("{} bytes, and the header states {}", bytes.len(), header.bytes);
            return Err(corrupt(cause));
        }
        if checksum(bytes).to_le_bytes() != bytes[CHECKSUM] {
            return Err(corrupt("the checksum differs"));
        }
        let mut rest = &bytes[HEADER_BYTES..];
        let rows = header.rows(&mut rest)?;
        let cells = [header.cells(0, &mut rest)?, header.cells(1, &mut rest)?];
        let [source, target] = cells;
        let weights = Self {
            rows,
            shapes: header.shapes,
            cells: [GridCells::default(), GridCells::default()],
            are_by_fraction: header.flags & 1 == 1,
        };
        let links = weights.len();
        let weights = weights
            .with_cells(source, target)
            .map_err(|error| corrupt(error.cause()))?;
        if weights.len() != links {
            return Err(corrupt("a link is of a cell that a mask leaves out"));
        }
        Ok(weights)
    }
}

impl WeightsHeader {
    fn read(bytes: &[u8]) -> Result<Self> {
        let Some(bytes) = bytes.get(..HEADER_BYTES).filter(|bytes| bytes[..8] == MAGIC) else {
            return Err(corrupt("no file of weights"));
        };
        let version = number32(bytes, 8);
        if version != VERSION {
            let cause = format!("version {version}; this program reads version {VERSION}");
            return Err(Error::new(Code::Unsupported, "weights", cause));
        }
        let (flags, links) = (number32(bytes, 12), number64(bytes, 32));
        if flags & !FLAGS != 0 {
            return Err(corrupt(format!("unknown flags {flags:#x}")));
        }
        if links > LINKS_MAX as u64 {
            let cause = format!("{links} links are more than {LINKS_MAX}");
            return Err(Error::new(Code::LimitExceeded, "weights", cause));
        }
        let shapes = [shape(bytes, 0)?, shape(bytes, 1)?];
        let counts = [points("source", &shapes[0])?, points("target", &shapes[1])?];
        let header = Self {
            flags,
            bytes: number64(bytes, 16),
            links: links as usize,
            shapes,
            counts,
        };
        let expected = header.length();
        if expected != header.bytes {
            let cause = format!(
                "the length is {}, and {expected} by the numbers of links and points",
                header.bytes
            );
            return Err(corrupt(cause));
        }
        Ok(header)
    }

    fn has(&self, side: usize, list: usize) -> bool {
        self.flags >> (1 + 3 * side + list) & 1 == 1
    }

    /// Returns the length that follows from the numbers of links and points. No sum exceeds 2^40.
    fn length(&self) -> u64 {
        let padded = |bytes: u64| bytes.next_multiple_of(8);
        let links = self.links as u64;
        let mut length = HEADER_BYTES as u64 + padded(4 * self.counts[1]) + padded(4 * links) + 8 * links;
        for (side, points) in self.counts.into_iter().enumerate() {
            for (list, width) in [8, 8, 1].into_iter().enumerate() {
                length += if self.has(side, list) {
                    padded(width * points)
                } else {
                    0
                };
            }
        }
        length
    }

    fn rows(&self, rest: &mut &[u8]) -> Result<LinkRows> {
        let lengths = take::<4>(rest, self.counts[1] as usize)?.map(u32::from_le_bytes);
        let mut starts = Vec::with_capacity(self.counts[1] as usize + 1);
        let mut links = 0_usize;
        starts.push(0);
        for length in lengths {
            links += length as usize;
            starts.push(links);
        }
        if links != self.links {
            return Err(corrupt(format!("rows have {links} links, and the file {}", self.links)));
        }
        let sources: Vec<u32> = take::<4>(rest, links)?.map(u32::from_le_bytes).collect();
        let weights: Vec<f64> = take::<8>(rest, links)?.map(f64::from_le_bytes).collect();
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite() || *weight == 0.0) {
            return Err(corrupt(format!("the weight of link {at} is {}", weights[at])));
        }
        for row in starts.windows(2) {
            let row = &sources[row[0]..row[1]];
            let rises = row.windows(2).all(|pair| pair[0] < pair[1]);
            if !rises || row.last().is_some_and(|&last| u64::from(last) >= self.counts[0]) {
                return Err(corrupt(
                    "sources of a target point are out of order, or no points of the source",
                ));
            }
        }
        Ok(LinkRows::new(starts, sources, weights))
    }

    fn cells(&self, side: usize, rest: &mut &[u8]) -> Result<GridCells> {
        let count = |list| {
            if self.has(side, list) {
                self.counts[side] as usize
            } else {
                0
            }
        };
        let areas = take::<8>(rest, count(0))?.map(f64::from_le_bytes).collect();
        let fractions = take::<8>(rest, count(1))?.map(f64::from_le_bytes).collect();
        let mask: Vec<u8> = take::<1>(rest, count(2))?.map(|[byte]| byte).collect();
        if mask.iter().any(|&byte| byte > 1) {
            return Err(corrupt("a mask has other bytes than 0 and 1"));
        }
        Ok(GridCells {
            areas,
            fractions,
            mask: mask.into_iter().map(|byte| byte == 1).collect(),
        })
    }
}

/// Appends a section, and zeros up to a multiple of 8 bytes.
fn push<const WIDTH: usize>(bytes: &mut Vec<u8>, numbers: impl Iterator<Item = [u8; WIDTH]>) {
    numbers.for_each(|number| bytes.extend(number));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// Takes a section of so many numbers.
fn take<'b, const WIDTH: usize>(
    rest: &mut &'b [u8],
    count: usize,
) -> Result<impl Iterator<Item = [u8; WIDTH]> + use<'b, WIDTH>> {
    let (used, padded) = (count * WIDTH, (count * WIDTH).next_multiple_of(8));
    let (section, behind) = rest.split_at_checked(padded).ok_or_else(|| corrupt("it ends early"))?;
    *rest = behind;
    let (numbers, padding) = section.split_at(used);
    if padding.iter().any(|&byte| byte != 0) {
        return Err(corrupt("bytes behind a section are not 0"));
    }
    Ok(numbers.as_chunks::<WIDTH>().0.iter().copied())
}

fn shape(header: &[u8], side: usize) -> Result<Vec<u64>> {
    let dimensions = number32(header, 40 + 4 * side) as usize;
    let start = 48 + 8 * DIMENSIONS_MAX * side;
    let extents: Vec<u64> = (0..DIMENSIONS_MAX).map(|at| number64(header, start + 8 * at)).collect();
    if dimensions == 0 || dimensions > DIMENSIONS_MAX || extents[dimensions..].iter().any(|&extent| extent != 0) {
        return Err(corrupt(format!("{dimensions} dimensions with the extents {extents:?}")));
    }
    Ok(extents[..dimensions].to_vec())
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(&bytes[..CHECKSUM.start]);
    sum.update(&bytes[CHECKSUM.end..]);
    sum.digest()
}

fn corrupt(cause: impl Into<String>) -> Error {
    Error::new(Code::Corrupt, "weights", cause)
}
