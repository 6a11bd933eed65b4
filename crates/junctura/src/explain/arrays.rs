//! Arrays that lack pieces.

use junctura_layout::{Distribution, Layout};
use junctura_model::Result;
use junctura_wire::body::TargetBody;

use super::reasons::{ClientReference, IncompleteArray, MissingPiece};
use crate::array::{ARRAYS, LackingArray};
use crate::pool::Pool;

/// Missing pieces that are listed.
const MISSING_MAX: usize = 16;
/// Requests that wait, of which those of bundles name the clients of an array.
const WAITS_MAX: usize = 10_000;

/// Returns the arrays that a selector means and that lack pieces.
pub(super) fn incomplete(pool: &Pool, selector: &str) -> Result<Vec<IncompleteArray>> {
    let target = TargetBody::selector(selector);
    let bundles = pool.bundles(ARRAYS, None)?;
    let mut found = Vec::new();
    for bundle in &bundles {
        if let Some(mut array) = LackingArray::of(pool, &target, bundle)? {
            array.look(pool)?;
            let missing = array.missing_ranks(MISSING_MAX);
            let layout = array.layout();
            let (pieces, of) = array.counts();
            found.push(IncompleteArray {
                key: array.key().to_owned(),
                epoch: bundle
                    .attributes
                    .as_ref()
                    .and_then(|one| one.get("epoch")?.parse().ok()),
                pieces,
                of,
                more: (of - pieces).saturating_sub(missing.len() as u64),
                missing: missing
                    .into_iter()
                    .map(|rank| MissingPiece {
                        rank,
                        boxes: layout.map_or_else(Vec::new, |layout| boxes(layout, rank)),
                    })
                    .collect(),
                clients: clients(pool, bundle.number)?,
            });
        }
    }
    Ok(found)
}

/// Returns the clients that have a bundle open.
fn clients(pool: &Pool, bundle: u64) -> Result<Vec<ClientReference>> {
    let waits = pool.reasons().waits(WAITS_MAX)?;
    let bundles = waits
        .iter()
        .flat_map(|wait| &wait.on)
        .filter_map(|on| on.bundle.as_ref());
    let its = bundles.filter(|one| one.number == bundle).flat_map(|one| &one.openers);
    let mut clients: Vec<ClientReference> = its.cloned().collect();
    clients.sort_by_key(|client| client.client);
    clients.dedup_by_key(|client| client.client);
    Ok(clients)
}

/// Returns the elements of a rank as slices.
fn boxes(layout: &Layout, rank: u64) -> Vec<String> {
    let dimensions = layout.shape().len();
    let bounds: Option<Vec<(u64, u64)>> = (0..dimensions)
        .map(|dimension| layout.bounds(rank, dimension))
        .collect();
    if let Some(bounds) = bounds {
        let extents = bounds.iter().map(|(first, last)| last - first + 1);
        let in_blocks = if extents.product::<u64>() == layout.own(rank) {
            ""
        } else {
            " in blocks"
        };
        let slices: Vec<String> = bounds
            .iter()
            .map(|(first, last)| format!("{first}:{}", last + 1))
            .collect();
        return vec![format!("[{}]{in_blocks}", slices.join(", "))];
    }
    let Distribution::Slabs(slabs) = layout.distribution() else {
        return Vec::new();
    };
    let slabs = usize::try_from(rank).ok().and_then(|rank| slabs.ranks().get(rank));
    let own = slabs.into_iter().flatten().filter(|slab| !slab.is_empty());
    let slices = own.map(|slab| {
        let slices = slab.start.iter().zip(&slab.stop);
        slices
            .map(|(start, stop)| format!("{start}:{stop}"))
            .collect::<Vec<_>>()
            .join(", ")
    });
    slices.map(|slices| format!("[{slices}]")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_slices() {
        let text = |layout: &str, rank| boxes(&layout.parse().unwrap(), rank).join(" ");
        assert_eq!(text("shape=30x41 grid=2x3", 5), "[15:30, 28:41]");
        assert_eq!(text("shape=30x41 grid=2x3 block=4x5", 0), "[0:28, 0:35] in blocks");
        assert_eq!(text("shape=30x41", 0), "[0:30, 0:41]");
        assert_eq!(
            text("shape=30x41 slabs=0:30x0:20;;0:10x20:41,10:30x20:41", 2),
            "[0:10, 20:41] [10:30, 20:41]"
        );
        assert_eq!(text("shape=30x41 slabs=0:30x0:20;;0:30x20:41", 1), "");
    }
}
