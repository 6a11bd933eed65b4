//! The last message to follows without a requirement: the objects that they have not received when the server ends.

use junctura_wire::Reply;
use junctura_wire::body::GapBody;

use crate::Effects;
use crate::core::engine::Core;
use crate::core::interests::flow::follow::send_gap;
use crate::core::interests::follow::FollowInterest;
use crate::core::interests::interest::StandingInterest;
use crate::core::objects::order::IncrementalSort;

/// The reason of the gap.
const STOPPED: &str = "stopped";
/// Objects of one follow that are named; the others are counted.
const NAMED_MAX: usize = 1000;

/// Sends each follow without a requirement a gap of the visible objects that were not delivered to it. For a server
/// that ends after this. Returns the number of these objects.
pub(crate) fn tell_undelivered(core: &mut Core, fx: &mut impl Effects) -> u64 {
    let exchange = &mut core.exchange;
    let (objects, count) = (&exchange.objects, &mut exchange.asked.count);
    let mut untold = exchange.asked.untold.objects(&exchange.asked.interests);
    let mut total = 0;
    for (id, interest) in &exchange.asked.interests.table {
        let StandingInterest::Follow(following) = interest else {
            continue;
        };
        let (client, request) = (following.client, following.request);
        let mut left: Vec<u32> = undelivered(following).collect();
        left.extend(untold.remove(&(id as u32)).into_iter().flatten());
        left.retain(|&id| objects[id].is_visible());
        left.sort_unstable_by_key(|&id| objects[id].sequence);
        total += left.len() as u64;
        let names = left.iter().take(NAMED_MAX).map(|&id| objects[id].name());
        send_gap(count, client, request, names, STOPPED, fx);
        let unnamed = left.len().saturating_sub(NAMED_MAX) as u64;
        if unnamed > 0 {
            let gap = GapBody {
                items: Vec::new(),
                reason: STOPPED.into(),
                unnamed: Some(unnamed),
            };
            fx.reply(client, request, &Reply::Gap(gap));
        }
    }
    total
}

fn undelivered(following: &FollowInterest) -> impl Iterator<Item = u32> {
    let is_plain = following.requirement.is_none();
    let first = following.first_phase.iter().flat_map(IncrementalSort::iter);
    first.chain(following.live.iter().copied()).filter(move |_| is_plain)
}
