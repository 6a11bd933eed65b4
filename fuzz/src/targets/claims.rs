//! Layouts that claim any size, two lines of text: the preparations of a reader and a gate cost little memory and time, since the
//! claimed memory does not exist. Runs under the limit of memory of `fuzz/run.sh`, and of one call.

use std::sync::Arc;

use crate::{Limits, text_of, within};
use junctura_copy::{Gather, Pack, Unpack};
use junctura_layout::{ElementKind, Layout, Plan, PlanSide, SharedRuns};

/// The entries of a plan and their copies: some hundred bytes for each of `LISTED_MAX` runs, ranks and slabs.
const LIMITS: Limits = Limits {
    held_bytes: 8 << 20,
    held_bytes_each: 512,
    steps: 200_000,
    steps_each: 32,
};

/// Runs that a plan may list, and ranks that it may name.
const LISTED_MAX: usize = 1 << 12;

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(text_of(bytes)));
}

fn fuzz(text: &str) {
    let layouts: Result<Vec<Arc<Layout>>, _> = text.lines().take(2).map(|line| line.parse().map(Arc::new)).collect();
    let Ok(layouts) = layouts else { return };
    let [from, to] = &layouts[..] else { return };
    let nowhere = vec![0; to.shape().len()];
    for side in [PlanSide::From, PlanSide::To] {
        let Ok(plan) = Plan::limited(from, to, &nowhere, side, 0, LISTED_MAX) else {
            continue;
        };
        let named = plan.parts().iter().map(|part| {
            let peers = part.runs.iter().map(|runs: &SharedRuns| runs.peers().len() as u128);
            peers.product::<u128>()
        });
        if named.sum::<u128>() > LISTED_MAX as u128 {
            continue;
        }
        let (lies, wanted) = (ElementKind::F64.into(), ElementKind::F32.into());
        let peer = plan.partners().first().map_or(0, |partner| partner.rank);
        if side == PlanSide::From {
            let _ = Pack::new(&plan, peer, lies, wanted);
            continue;
        }
        let _ = Unpack::new(&plan, peer, lies, wanted);
        if let Ok(gather) = Gather::new(&plan, lies, wanted) {
            let pieces = vec![&[0_u8; 8][..]; gather.peers().len()];
            let _ = gather.run(&pieces, &mut [0; 8], 1);
        }
    }
}
