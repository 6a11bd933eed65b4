//! The families of metrics, as a table.

use crate::metrics::text::MetricFamily;
use crate::metrics::text::MetricKind::{Counter, Gauge, Histogram, Info};

macro_rules! families {
    ($($constant:ident = $name:literal, $kind:ident, $labels:expr, $help:literal;)*) => {
        $(pub(super) const $constant: MetricFamily = MetricFamily {
            name: $name,
            kind: $kind,
            labels: &$labels,
            help: $help,
        };)*

        /// All families, in the order of the text.
        #[cfg(test)]
        pub(super) const ALL: &[&MetricFamily] = &[$(&$constant,)*];
    };
}

families! {
    POOL = "junctura_pool", Info, ["incarnation", "version"], "The server";
    BOARD_UP = "junctura_board_up", Gauge, [], "1: the numbers are of one moment; 0: the server was stopped or killed while it wrote them";
    START_TIME = "junctura_start_time_seconds", Gauge, [], "When the server started, since 1970";
    TURN_AGE = "junctura_turn_age_seconds", Gauge, [], "Time since the deciding thread last turned; more than 3 s: the server hangs or has ended";
    DRAINING = "junctura_draining", Gauge, [], "1: the server takes nothing new, and ends when what is owed was received";
    TURNS = "junctura_turns", Counter, [], "Turns of the deciding thread";
    WAKEUPS = "junctura_wakeups", Counter, [], "Times that the deciding thread slept and was woken";
    BUSY = "junctura_busy_seconds", Counter, [], "Processor time of the deciding thread";
    TURN_TIME = "junctura_turn_seconds", Histogram, [], "Time of a turn: how long others wait for theirs";
    VISIBLE = "junctura_objects_visible", Gauge, ["dataset"], "Visible objects";
    VISIBLE_BYTES = "junctura_objects_visible_bytes", Gauge, ["dataset"], "Bytes of the payloads of visible objects";
    KEPT = "junctura_objects_kept", Gauge, [], "Versions that are not visible but kept for clients";
    TOMBSTONES = "junctura_tombstones", Gauge, [], "Keys of removed objects that are remembered";
    OFFERED = "junctura_objects_offered", Counter, ["component"], "Objects that became visible, by the component that offered them";
    OFFERED_BYTES = "junctura_offered_bytes", Counter, ["component"], "Bytes of their payloads";
    DELIVERED = "junctura_objects_delivered", Counter, ["component"], "Deliveries, by the component that received them";
    DELIVERED_BYTES = "junctura_delivered_bytes", Counter, ["component"], "Bytes of their payloads";
    RELEASED = "junctura_objects_released", Counter, ["component"], "Releases";
    GONE = "junctura_objects_gone", Counter, ["reason"], "Objects that are no longer visible";
    DECLINED = "junctura_objects_declined", Counter, [], "Objects that were not offered, since nothing wanted them";
    GAPPED = "junctura_objects_gapped", Counter, [], "Objects named in gaps";
    DELAY = "junctura_delivery_delay_seconds", Histogram, [], "Time from an object's visibility to each of its deliveries; a late reader counts, too";
    HOLD = "junctura_delivery_hold_seconds", Histogram, [], "Time from a delivery to its release";
    HELD = "junctura_deliveries_held", Gauge, ["component"], "Deliveries that are not released";
    OBJECT_SIZE = "junctura_object_size_bytes", Histogram, [], "Bytes of the payload of an object";
    BUDGET = "junctura_memory_budget_bytes", Gauge, [], "Memory that the pool may use for payloads";
    USED = "junctura_memory_used_bytes", Gauge, ["kind"], "Memory in use: leased segments, and payloads inside messages";
    PAYLOAD = "junctura_payload_bytes", Gauge, ["tier"], "Bytes of payloads in memory, and in the file tier";
    SEGMENTS = "junctura_segments", Gauge, [], "Segments";
    SLOTS = "junctura_slots_occupied", Gauge, [], "Slots with a payload";
    RECORD = "junctura_record_bytes", Gauge, [], "Bytes of attributes, keys and index entries";
    RECORD_BUDGET = "junctura_record_budget_bytes", Gauge, [], "Bytes that attributes, keys and index entries may take";
    MEMORY_WAITS = "junctura_memory_waits", Counter, ["what"], "Offers and leases that waited for memory";
    MEMORY_WAIT = "junctura_memory_wait_seconds", Histogram, [], "Time that offers and leases waited until they had memory";
    WAITING = "junctura_waiting", Gauge, ["kind"], "Requests that wait now: offers and leases for memory, withdraws for holders";
    SPILL_LIMIT = "junctura_spill_limit_bytes", Gauge, [], "Bytes that the file tier may take; 0: there is none";
    SPILL_USED = "junctura_spill_used_bytes", Gauge, [], "Bytes of the file tier in use";
    SPILL_OBJECTS = "junctura_spill_objects", Gauge, [], "Objects whose payloads are in the file tier";
    SPILL_UNDERWAY = "junctura_spill_underway", Gauge, [], "Payloads that are being written to the file tier";
    SPILL_WRITTEN = "junctura_spill_written", Counter, [], "Payloads written to the file tier";
    SPILL_WRITTEN_BYTES = "junctura_spill_written_bytes", Counter, [], "Bytes written to the file tier";
    SPILL_REFUSED = "junctura_spill_refused", Counter, [], "Payloads that the disk refused";
    OWED = "junctura_requirement_owed_objects", Gauge, ["requirement"], "Objects that a named requirement is owed";
    OWED_BYTES = "junctura_requirement_owed_bytes", Gauge, ["requirement"], "Bytes of the payloads that it is owed";
    IN_FLIGHT = "junctura_requirement_in_flight", Gauge, ["requirement"], "Deliveries through it that are not released";
    MEMBERS = "junctura_requirement_members", Gauge, ["requirement"], "Clients that read it";
    OWED_AGE = "junctura_requirement_oldest_owed_age_seconds", Gauge, ["requirement"], "How long it has been owed the oldest object";
    RELEASE_AGE = "junctura_requirement_last_release_age_seconds", Gauge, ["requirement"], "Time since the last release of what arrived through it";
    LOST = "junctura_requirement_lost_objects", Gauge, ["requirement"], "Objects that were lost while it had no reader";
    BROKEN = "junctura_requirement_broken", Gauge, ["requirement"], "1: it is broken";
    BREAKS = "junctura_requirement_breaks", Counter, [], "Times that a requirement was broken";
    INTERESTS = "junctura_interests", Gauge, [], "Standing demands, follows, requirements and subscriptions";
    UNINDEXED = "junctura_interests_unindexed", Gauge, [], "Interests that are compared with every offer";
    BUNDLES_OPEN = "junctura_bundles_open", Gauge, [], "Bundles that are not visible yet";
    STAGED = "junctura_bundle_staged_objects", Gauge, [], "Objects staged in them";
    STAGED_BYTES = "junctura_bundle_staged_bytes", Gauge, [], "Bytes of the payloads of these objects";
    BUNDLES = "junctura_bundles", Counter, ["outcome"], "Bundles that became visible or were aborted";
    CLIENTS = "junctura_clients", Gauge, ["component"], "Clients that are connected";
    JOINED = "junctura_clients_joined", Counter, [], "Clients that connected";
    LEFT = "junctura_clients_left", Counter, [], "Clients that left";
    BACKLOG = "junctura_backlog_bytes", Gauge, ["component"], "Bytes of messages that clients have not read";
    ERRORS = "junctura_errors", Counter, ["code"], "Requests that failed, by the code of their error";
    FRAMES = "junctura_frames", Counter, ["direction"], "Messages from and to clients";
    WIRE_BYTES = "junctura_wire_bytes", Counter, ["direction"], "Bytes of these messages";
    READS = "junctura_reads", Counter, [], "Times that the server took what had arrived from a client";
    WRITES = "junctura_writes", Counter, [], "Times that the server sent to a client";
    EVENTS = "junctura_events", Counter, [], "Events sent to subscribers";
    ARCHIVED = "junctura_archived", Counter, [], "Objects reported to be in a store";
    UNARCHIVED = "junctura_unarchived", Counter, [], "Objects that could not be put into a store";
    EDGE_OBJECTS = "junctura_edge_objects", Counter, ["from", "to"], "Deliveries from one component to another; only in the detailed text";
    EDGE_BYTES = "junctura_edge_bytes", Counter, ["from", "to"], "Bytes of their payloads";
    PROCESS_CPU = "process_cpu_seconds", Counter, [], "Processor time of the server's process, all threads";
    PROCESS_RESIDENT = "process_resident_memory_bytes", Gauge, [], "Resident memory of the server's process, with the payloads that it has mapped";
    PROCESS_FDS = "process_open_fds", Gauge, [], "Descriptors that the server's process has open";
    PROCESS_FDS_MAX = "process_max_fds", Gauge, [], "Descriptors that it may open";
    FOLDED = "junctura_labels_folded", Gauge, ["label"], "Names that are part of others, beyond the limit of a label";
}
