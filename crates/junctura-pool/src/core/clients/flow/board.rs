//! The numbers of this moment, written on the board.

use junctura_board::{
    BoardClient, BoardComponent, BoardCounter, BoardDataset, BoardEdit, BoardHistogram, BoardRequirement, WritableWords,
};

use crate::core::engine::Core;
use crate::core::interests::requirement::RequirementState;

impl Core {
    /// Writes the numbers of this moment; `backlog` gives the bytes that a client has not read.
    pub fn write_board<W: WritableWords>(&self, board: &mut BoardEdit<'_, W>, backlog: impl Fn(u32) -> usize) {
        write_totals(self, board);
        write_gauges(self, board);
        write_memory(self, board);
        write_clients(self, board, backlog);
        write_flows(self, board);
        let interests = &self.exchange.asked.interests;
        for requirement in interests.named.values().filter_map(|&id| interests.requirement_ref(id)) {
            write_requirement(self, board, requirement);
        }
    }
}

fn write_totals<W: WritableWords>(core: &Core, board: &mut BoardEdit<'_, W>) {
    let count = &core.exchange.asked.count;
    let bundles = core.exchange.bundles.bundles_stat();
    let totals = [
        (BoardCounter::Offered, count.offered),
        (BoardCounter::OfferedBytes, count.offered_bytes),
        (BoardCounter::Delivered, count.delivered),
        (BoardCounter::DeliveredBytes, count.delivered_bytes),
        (BoardCounter::Released, count.released),
        (BoardCounter::Superseded, count.superseded),
        (BoardCounter::Withdrawn, count.withdrawn),
        (BoardCounter::Expired, count.expired),
        (BoardCounter::DroppedArchived, count.dropped_archived),
        (BoardCounter::Events, count.events),
        (BoardCounter::Gaps, count.gaps),
        (BoardCounter::Broken, count.broken),
        (BoardCounter::Declined, count.declined),
        (BoardCounter::Archived, count.archived),
        (BoardCounter::Unarchived, count.unarchived),
        (BoardCounter::Failed, count.failed),
        (BoardCounter::OffersWaited, count.offers_waiting),
        (BoardCounter::LeasesWaited, count.leases_waited),
        (BoardCounter::SegmentsMade, count.segments_made),
        (BoardCounter::BundlesCompleted, bundles.completed),
        (BoardCounter::BundlesAborted, bundles.aborted),
        (BoardCounter::BundlesOpen, bundles.open),
        (BoardCounter::BundleStaged, bundles.staged),
        (BoardCounter::BundleStagedBytes, bundles.staged_bytes),
    ];
    for (counter, value) in totals {
        board.counter(counter, value);
    }
    for (&code, &errors) in &count.errors {
        board.errors(code, errors);
    }
}

fn write_gauges<W: WritableWords>(core: &Core, board: &mut BoardEdit<'_, W>) {
    let (objects, asked) = (&core.exchange.objects, &core.exchange.asked);
    let staged = core.exchange.bundles.bundles_stat().staged;
    let gauges = [
        (BoardCounter::Visible, asked.count.visible),
        (BoardCounter::VisibleBytes, asked.count.visible_bytes),
        (BoardCounter::Kept, objects.len() as u64 - asked.count.visible - staged),
        (BoardCounter::Tombstones, objects.tombstones.len() as u64),
        (BoardCounter::Sequence, objects.sequence),
        (BoardCounter::RecordBytes, objects.record_bytes),
        (BoardCounter::RecordBudgetBytes, objects.record_budget_bytes()),
        (BoardCounter::Interests, asked.interests.table.len() as u64),
        (
            BoardCounter::InterestsUnindexed,
            asked.interests.unindexed_interests() as u64,
        ),
        (BoardCounter::Requirements, asked.interests.requirements.len() as u64),
        (BoardCounter::RequirementsNamed, asked.interests.named.len() as u64),
        (BoardCounter::Owed, asked.interests.owed as u64),
        (BoardCounter::Withdrawals, core.exchange.withdrawals.table.len() as u64),
        (BoardCounter::Clients, asked.clients.table.len() as u64),
    ];
    for (counter, value) in gauges {
        board.counter(counter, value);
    }
}

fn write_memory<W: WritableWords>(core: &Core, board: &mut BoardEdit<'_, W>) {
    let memory = core.exchange.memory.memory_stat(&core.exchange.objects);
    let gauges = [
        (BoardCounter::BudgetBytes, memory.budget_bytes),
        (BoardCounter::UsedBytes, memory.used_bytes),
        (BoardCounter::SegmentBytes, memory.segment_bytes),
        (BoardCounter::InlineBytes, memory.inline_bytes),
        (BoardCounter::OccupiedBytes, memory.occupied_bytes),
        (BoardCounter::SlotsOccupied, memory.slots_occupied),
        (BoardCounter::Segments, memory.segments),
        (BoardCounter::LeasesWaiting, memory.leases_waiting),
    ];
    for (counter, value) in gauges {
        board.counter(counter, value);
    }
    let Some(spill) = core.exchange.memory.spill_stat() else {
        return;
    };
    let gauges = [
        (BoardCounter::SpillLimitBytes, spill.limit_bytes),
        (BoardCounter::SpillUsedBytes, spill.used_bytes),
        (BoardCounter::SpillObjects, spill.objects),
        (BoardCounter::SpillUnderway, spill.underway),
        (BoardCounter::SpillWritten, spill.written),
        (BoardCounter::SpillWrittenBytes, spill.written_bytes),
        (BoardCounter::SpillRefused, spill.refused),
    ];
    for (counter, value) in gauges {
        board.counter(counter, value);
    }
}

fn write_clients<W: WritableWords>(core: &Core, board: &mut BoardEdit<'_, W>, backlog: impl Fn(u32) -> usize) {
    let (mut held, mut waiting, mut unread) = (0, 0, 0);
    for (&client, state) in &core.exchange.asked.clients.table {
        held += state.held.len() as u64;
        waiting += state.waiting_offers.len() as u64;
        let Some(peer) = &state.peer else { continue };
        let backlog_bytes = backlog(client) as u64;
        unread += backlog_bytes;
        board.client(&BoardClient {
            client,
            pid: peer.pid,
            component: state.flow.into(),
            offered: state.offered,
            delivered: state.delivered,
            held: state.held.len() as u64,
            requests: state.pending.len() as u64,
            offers_waiting: state.waiting_offers.len() as u64,
            leased_bytes: core.exchange.memory.ledger.leased_bytes(client),
            backlog_bytes,
            transport: &peer.route,
            name: &peer.name,
            host: &peer.host,
            note: &state.note,
        });
    }
    board.counter(BoardCounter::Held, held);
    board.counter(BoardCounter::OffersWaiting, waiting);
    board.counter(BoardCounter::BacklogBytes, unread);
}

fn write_requirement<W: WritableWords>(core: &Core, board: &mut BoardEdit<'_, W>, requirement: &RequirementState) {
    let Some(named) = requirement.named() else { return };
    let now = core.exchange.asked.timers.now;
    let oldest = requirement.oldest_owed();
    let readers = || u64::from(requirement.reader.is_some());
    board.requirement(&BoardRequirement {
        name: named.name.as_str(),
        owed: requirement.owed_len() as u64,
        owed_bytes: requirement.owed_bytes,
        in_flight: requirement.in_flight,
        members: requirement
            .group
            .as_deref()
            .map_or_else(readers, |group| group.members.len() as u64),
        oldest_owed_age_ns: oldest.map(|(_, since)| now.saturating_sub(since)),
        last_release_age_ns: named.last_release.map(|at| now.saturating_sub(at)),
        lost: requirement.lost.len(),
        users: named.users.len() as u64,
        is_broken: requirement.broken.is_some(),
    });
}

fn write_flows<W: WritableWords>(core: &Core, board: &mut BoardEdit<'_, W>) {
    let flows = &core.exchange.asked.flows;
    for (place, (name, sums)) in flows.datasets.iter().enumerate() {
        let dataset = BoardDataset {
            name,
            offered: sums.offered,
            offered_bytes: sums.offered_bytes,
            visible: sums.visible,
            visible_bytes: sums.visible_bytes,
        };
        board.dataset(place, &dataset);
    }
    let (mut joined, mut left) = (0, 0);
    for (place, (name, sums)) in flows.components.iter().enumerate() {
        joined += sums.joined;
        left += sums.left;
        let component = BoardComponent {
            name,
            clients: sums.clients,
            joined: sums.joined,
            left: sums.left,
            offered: sums.offered,
            offered_bytes: sums.offered_bytes,
            delivered: sums.delivered,
            delivered_bytes: sums.delivered_bytes,
            released: sums.released,
        };
        board.component(place, &component);
    }
    let components = flows.components.len();
    for (from, to) in (0..components).flat_map(|from| (0..components).map(move |to| (from, to))) {
        let [objects, bytes] = flows.edge(from, to);
        board.edge(from, to, objects, bytes);
    }
    board.tables(flows.datasets.len(), components);
    board.counter(BoardCounter::ClientsJoined, joined);
    board.counter(BoardCounter::ClientsLeft, left);
    board.histogram(BoardHistogram::ObjectSize, &flows.sizes);
    board.histogram(BoardHistogram::DeliveryDelay, &flows.delays);
    board.histogram(BoardHistogram::HoldTime, &flows.holds);
    board.histogram(BoardHistogram::MemoryWait, &flows.memory_waits);
}
