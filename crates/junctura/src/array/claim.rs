//! Compares what the head of an array claims with the pieces that exist, before a plan is made of it.
//!
//! A head is text that any producer can write: it may name more elements, or more ranks, than any memory has. A plan of it costs memory and
//! time for what it lists. So two things are compared first. The server has counted the members of the head's bundle: a layout that gives
//! elements to more ranks is refused. And the owners of some elements are looked up: the first element, the last one, and others at random. At
//! least half of them must have a piece (single pieces may be withdrawn), and each piece must have the length that the layout gives it. The
//! server lists them; no payload is moved. So a plan is made only of an array of which, in all likelihood, a large part exists. A small
//! claim is planned without a look at its pieces: it costs little.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use junctura_layout::{Element, Layout};
use junctura_model::selector::quoted;
use junctura_model::{Code, Error, Result};

use crate::pool::Pool;
use crate::verbs::list::{Entry, ListOptions};

/// Elements whose owners are looked up.
const SAMPLED: u64 = 16;
/// A claim of no more elements, of no more ranks, is small.
const ELEMENTS_SMALL: u64 = 1 << 20;
const RANKS_SMALL: u64 = 1 << 10;

/// Compares the number of pieces with that of the objects that became visible with the head, as members of its bundle. The server counts
/// 0 for an object without a bundle, and servers of earlier versions count none: then nothing is known.
///
/// # Errors
/// `Corrupt` where the layout needs more pieces.
pub(super) fn check_count(key: &str, layout: &Layout, siblings: u32) -> Result<()> {
    let owners = layout.owners();
    if siblings == 0 || owners <= u64::from(siblings) {
        return Ok(());
    }
    let cause = format!("its layout needs {owners} pieces, and {siblings} objects became visible with it");
    Err(Error::new(Code::Corrupt, key, cause))
}

/// Looks up some pieces of the array with this key. May wait for the server.
///
/// # Errors
/// `Expired` where most pieces are missing; `InvalidArgument` where one has another length than the layout gives it.
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
    for page in pool.list_served(&selector, ListOptions::default())? {
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
/// `InvalidArgument` where this is not the length of a rank's piece.
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

/// The owners of the first element, of the last one, and of some at random; none where the array has no elements.
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
