//! Checks the claim of an array's head against the existing pieces, before a plan is made.
//!
//! A head is text that any producer can write: it may claim more elements, or more ranks, than any memory can hold, and
//! a plan costs memory and time for each. Two checks run first. The server counts the members of the head's bundle: a
//! layout that assigns elements to more ranks is rejected. Then the owners of some elements are looked up: of the first
//! element, the last one, and random others. At least half of the owners must have a piece (single pieces may be
//! withdrawn), and each piece must have the length that the layout gives it. The server lists the pieces; no payload is
//! moved. A plan is thus made only for an array of which, in all likelihood, a large part exists. A small claim is
//! planned without this check, because its plan is cheap.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use junctura_layout::{Element, Layout};
use junctura_model::selector::quoted;
use junctura_model::{Code, Error, Result};

use crate::pool::Pool;
use crate::verbs::list::{Entry, ListOptions, begin_list};

/// Number of elements whose owners are looked up.
const SAMPLED: u64 = 16;
/// A claim of at most this many elements and ranks is small.
const ELEMENTS_SMALL: u64 = 1 << 20;
const RANKS_SMALL: u64 = 1 << 10;

/// Compares the number of pieces with the number of objects that became visible with the head, as members of its
/// bundle. The server counts 0 for an object without a bundle, and servers of earlier versions do not count: the check
/// is then skipped.
///
/// # Errors
/// `Corrupt` if the layout needs more pieces.
pub(super) fn check_count(key: &str, layout: &Layout, siblings: u32) -> Result<()> {
    let owners = layout.owners();
    if siblings == 0 || owners <= u64::from(siblings) {
        return Ok(());
    }
    let cause = format!("its layout needs {owners} pieces, and {siblings} objects became visible with it");
    Err(Error::new(Code::Corrupt, key, cause))
}

/// Looks up some pieces of the array with this key. May block on the server.
///
/// # Errors
/// `Expired` if most pieces are missing; `InvalidArgument` if a piece has another length than the layout gives it.
pub(super) fn check(
    pool: &Pool,
    key: &str,
    (layout, element): (&Layout, Element),
    (piece_of, epoch): (&str, Option<i64>),
) -> Result<()> {
    if layout.elements() <= ELEMENTS_SMALL && layout.ranks() <= RANKS_SMALL {
        return Ok(());
    }
    let mut owners: BTreeMap<u64, bool> = sample(layout).map(|rank| (rank, false)).collect();
    let ranks: Vec<String> = owners.keys().map(ToString::to_string).collect();
    let epoch = epoch.map_or(String::new(), |epoch| format!(",epoch={epoch}"));
    let selector = format!("piece_of={},rank={}{epoch}", quoted(piece_of), ranks.join("/"));
    let served = begin_list(&pool.connection()?, &selector, ListOptions::default())?;
    for page in served.wait()? {
        for piece in page? {
            let Some(rank) = rank_of(&piece) else { continue };
            if let Some(is_there) = owners.get_mut(&rank) {
                check_length(layout, element, rank, piece.bytes())?;
                *is_there = true;
            }
        }
    }
    let missing: Vec<&u64> = owners
        .iter()
        .filter(|(_, is_there)| !**is_there)
        .map(|(rank, _)| rank)
        .collect();
    match missing.first() {
        Some(rank) if 2 * missing.len() > owners.len() => {
            let cause = format!("the piece of rank {rank} is not there: the array is withdrawn, or was never offered");
            Err(Error::new(Code::Expired, key, cause))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// `InvalidArgument` if this is not the length of a rank's piece.
pub(super) fn check_length(layout: &Layout, element: Element, rank: u64, bytes: u64) -> Result<()> {
    let (room, width) = (layout.room(rank), element.kind.bytes());
    if u128::from(room) * width as u128 == u128::from(bytes) {
        return Ok(());
    }
    let cause = format!("rank {rank} has {room} elements of {width} bytes; {bytes} bytes were given");
    Err(Error::new(Code::InvalidArgument, "length", cause))
}

fn rank_of(piece: &Entry) -> Option<u64> {
    piece.get("rank")?.parse().ok()
}

/// Returns the owners of the first element, of the last one, and of random ones; none if the array is empty.
fn sample(layout: &Layout) -> impl Iterator<Item = u64> {
    let shape = layout.shape();
    let random = RandomState::new();
    let at = move |number: u64, dimension: usize, extent: u64| match number {
        0 => 0,
        1 => extent - 1,
        _ => random.hash_one((number, dimension)) % extent,
    };
    let count = if shape.contains(&0) { 0 } else { SAMPLED };
    (0..count).filter_map(move |number| {
        let extents = shape.iter().enumerate();
        let index: Vec<u64> = extents
            .map(|(dimension, &extent)| at(number, dimension, extent))
            .collect();
        layout.locate(&index).map(|(rank, _)| rank)
    })
}
