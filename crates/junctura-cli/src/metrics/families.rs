//! The metrics of a board.

use std::time::Duration;

use junctura::board::layout::{DATASETS_MAX, REQUIREMENTS_MAX};
use junctura::board::{BoardClient, BoardHistogram, BoardHistogramSnapshot, BoardRequirement, BoardSnapshot};
use junctura::{BoardCounter as Counter, BoardState, PoolBoard};

use crate::metrics::process::ProcessNumbers;
use crate::metrics::table as family;
use crate::metrics::text::{MetricFamily, MetricText};

/// Edges in the detailed text, those with most deliveries.
const EDGES_MAX: usize = 1000;
/// The value for all others.
const OTHERS: &str = "others";
/// Bounds of histograms are powers of four: so many.
const BOUNDS: u32 = 16;
/// The least bound of times: 4^5 ns is about a microsecond.
const TIME_POWER: u32 = 5;

/// Which names are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownNames {
    /// All, up to the limits of the labels.
    All,
    /// All of the board, with the edges between components: thousands of series.
    Detailed,
    /// None of components, datasets and requirements: everybody on the machine may read the text.
    None,
}

impl ShownNames {
    /// Returns the greatest number of values of the labels `component` and `dataset`.
    fn names_max(self) -> usize {
        if self == Self::Detailed { DATASETS_MAX } else { 32 }
    }

    /// Returns the greatest number of values of the label `requirement`.
    fn requirements_max(self) -> usize {
        if self == Self::Detailed { REQUIREMENTS_MAX } else { 64 }
    }
}

/// Returns the metrics of a board as text.
pub(crate) fn metrics_text(board: &PoolBoard, names: ShownNames) -> String {
    text_of(&board.snapshot(), board.turn_age(), names)
}

fn text_of(board: &BoardSnapshot, turn_age: Duration, names: ShownNames) -> String {
    let mut writer = FamilyWriter {
        board,
        text: MetricText::default(),
        names,
    };
    writer.server(turn_age);
    writer.objects();
    writer.memory();
    writer.requirements();
    writer.interests();
    writer.clients();
    writer.traffic();
    writer.process();
    if names == ShownNames::Detailed {
        writer.edges();
    }
    writer.folded();
    writer.text.finish()
}

struct FamilyWriter<'a> {
    board: &'a BoardSnapshot,
    text: MetricText,
    names: ShownNames,
}

impl FamilyWriter<'_> {
    fn server(&mut self, turn_age: Duration) {
        let head = &self.board.head;
        self.text.family(&family::POOL);
        let incarnation = head.incarnation.to_string();
        self.text
            .sample(&family::POOL, &[&incarnation, env!("CARGO_PKG_VERSION")], 1);
        self.one(&family::BOARD_UP, u8::from(self.board.is_consistent));
        self.one(&family::START_TIME, seconds(head.started_wall_ns));
        self.one(&family::TURN_AGE, turn_age.as_secs_f64());
        self.one(&family::DRAINING, u8::from(head.state == BoardState::Draining));
        self.one(&family::TURNS, head.turns);
        self.counter(&family::WAKEUPS, Counter::Wakeups);
        self.one(&family::BUSY, seconds(self.board.counter(Counter::BusyNs)));
        let times = self.board.histogram(BoardHistogram::TurnTime);
        self.histogram(&family::TURN_TIME, times, TIME_POWER, 1e9);
    }

    fn objects(&mut self) {
        let board = self.board;
        let visible = board.datasets.iter().map(|one| (one.name.as_str(), one.visible));
        self.named(&family::VISIBLE, visible);
        let bytes = board.datasets.iter().map(|one| (one.name.as_str(), one.visible_bytes));
        self.named(&family::VISIBLE_BYTES, bytes);
        self.counter(&family::KEPT, Counter::Kept);
        self.counter(&family::TOMBSTONES, Counter::Tombstones);
        let components = || board.components.iter();
        self.named(
            &family::OFFERED,
            components().map(|one| (one.name.as_str(), one.offered)),
        );
        self.named(
            &family::OFFERED_BYTES,
            components().map(|one| (one.name.as_str(), one.offered_bytes)),
        );
        self.named(
            &family::DELIVERED,
            components().map(|one| (one.name.as_str(), one.delivered)),
        );
        self.named(
            &family::DELIVERED_BYTES,
            components().map(|one| (one.name.as_str(), one.delivered_bytes)),
        );
        self.named(
            &family::RELEASED,
            components().map(|one| (one.name.as_str(), one.released)),
        );
        self.labelled(
            &family::GONE,
            &[
                ("withdrawn", Counter::Withdrawn),
                ("expired", Counter::Expired),
                ("superseded", Counter::Superseded),
                ("archived", Counter::DroppedArchived),
            ],
        );
        self.counter(&family::DECLINED, Counter::Declined);
        self.counter(&family::GAPPED, Counter::Gaps);
        let delays = board.histogram(BoardHistogram::DeliveryDelay);
        self.histogram(&family::DELAY, delays, TIME_POWER, 1e9);
        self.histogram(
            &family::HOLD,
            board.histogram(BoardHistogram::HoldTime),
            TIME_POWER,
            1e9,
        );
        self.by_component(&family::HELD, |client| client.held);
        let sizes = board.histogram(BoardHistogram::ObjectSize);
        self.histogram(&family::OBJECT_SIZE, sizes, 0, 1.0);
    }

    fn memory(&mut self) {
        self.counter(&family::BUDGET, Counter::BudgetBytes);
        let used = [("segment", Counter::SegmentBytes), ("inline", Counter::InlineBytes)];
        self.labelled(&family::USED, &used);
        let in_memory = self.board.counter(Counter::OccupiedBytes) + self.board.counter(Counter::InlineBytes);
        self.text.family(&family::PAYLOAD);
        self.text.sample(&family::PAYLOAD, &["memory"], in_memory);
        let in_file = self.board.counter(Counter::SpillUsedBytes);
        self.text.sample(&family::PAYLOAD, &["file"], in_file);
        self.counter(&family::SEGMENTS, Counter::Segments);
        self.counter(&family::SLOTS, Counter::SlotsOccupied);
        self.counter(&family::RECORD, Counter::RecordBytes);
        self.counter(&family::RECORD_BUDGET, Counter::RecordBudgetBytes);
        let waits = [("offer", Counter::OffersWaited), ("lease", Counter::LeasesWaited)];
        self.labelled(&family::MEMORY_WAITS, &waits);
        let waited = self.board.histogram(BoardHistogram::MemoryWait);
        self.histogram(&family::MEMORY_WAIT, waited, TIME_POWER, 1e9);
        let waiting = [
            ("offer", Counter::OffersWaiting),
            ("lease", Counter::LeasesWaiting),
            ("withdraw", Counter::Withdrawals),
        ];
        self.labelled(&family::WAITING, &waiting);
        self.counter(&family::SPILL_LIMIT, Counter::SpillLimitBytes);
        self.counter(&family::SPILL_USED, Counter::SpillUsedBytes);
        self.counter(&family::SPILL_OBJECTS, Counter::SpillObjects);
        self.counter(&family::SPILL_UNDERWAY, Counter::SpillUnderway);
        self.counter(&family::SPILL_WRITTEN, Counter::SpillWritten);
        self.counter(&family::SPILL_WRITTEN_BYTES, Counter::SpillWrittenBytes);
        self.counter(&family::SPILL_REFUSED, Counter::SpillRefused);
    }

    fn requirements(&mut self) {
        self.of_requirements(&family::OWED, |one| Some(one.owed as f64));
        self.of_requirements(&family::OWED_BYTES, |one| Some(one.owed_bytes as f64));
        self.of_requirements(&family::IN_FLIGHT, |one| Some(one.in_flight as f64));
        self.of_requirements(&family::MEMBERS, |one| Some(one.members as f64));
        self.of_requirements(&family::OWED_AGE, |one| one.oldest_owed_age_ns.map(seconds));
        self.of_requirements(&family::RELEASE_AGE, |one| one.last_release_age_ns.map(seconds));
        self.of_requirements(&family::LOST, |one| Some(one.lost as f64));
        self.of_requirements(&family::BROKEN, |one| Some(f64::from(u8::from(one.is_broken))));
        self.counter(&family::BREAKS, Counter::Broken);
    }

    fn interests(&mut self) {
        self.counter(&family::INTERESTS, Counter::Interests);
        self.counter(&family::UNINDEXED, Counter::InterestsUnindexed);
        self.counter(&family::BUNDLES_OPEN, Counter::BundlesOpen);
        self.counter(&family::STAGED, Counter::BundleStaged);
        self.counter(&family::STAGED_BYTES, Counter::BundleStagedBytes);
        let outcomes = [
            ("completed", Counter::BundlesCompleted),
            ("aborted", Counter::BundlesAborted),
        ];
        self.labelled(&family::BUNDLES, &outcomes);
    }

    fn clients(&mut self) {
        let clients = self.board.components.iter();
        self.named(&family::CLIENTS, clients.map(|one| (one.name.as_str(), one.clients)));
        self.counter(&family::JOINED, Counter::ClientsJoined);
        self.counter(&family::LEFT, Counter::ClientsLeft);
        self.by_component(&family::BACKLOG, |client| client.backlog_bytes);
        self.text.family(&family::ERRORS);
        for (code, count) in &self.board.errors {
            self.text.sample(&family::ERRORS, &[code.name()], count);
        }
    }

    fn traffic(&mut self) {
        let frames = [("in", Counter::FramesRead), ("out", Counter::FramesWritten)];
        self.labelled(&family::FRAMES, &frames);
        let bytes = [("in", Counter::BytesRead), ("out", Counter::BytesWritten)];
        self.labelled(&family::WIRE_BYTES, &bytes);
        self.counter(&family::READS, Counter::Reads);
        self.counter(&family::WRITES, Counter::Writes);
        self.counter(&family::EVENTS, Counter::Events);
        self.counter(&family::ARCHIVED, Counter::Archived);
        self.counter(&family::UNARCHIVED, Counter::Unarchived);
    }

    /// The server's process, as far as it can be inspected.
    fn process(&mut self) {
        let process = ProcessNumbers::of(self.board.head.pid);
        self.maybe(&family::PROCESS_CPU, process.cpu_seconds);
        self.maybe(&family::PROCESS_RESIDENT, process.resident_bytes);
        self.maybe(&family::PROCESS_FDS, process.open_fds);
        self.maybe(&family::PROCESS_FDS_MAX, process.max_fds);
    }

    fn edges(&mut self) {
        let board = self.board;
        let mut edges = board.edges.clone();
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.objects));
        edges.truncate(EDGES_MAX);
        let name = |place: u16| board.components.get(usize::from(place)).map_or("", |one| &one.name);
        self.text.family(&family::EDGE_OBJECTS);
        for edge in &edges {
            self.text
                .sample(&family::EDGE_OBJECTS, &[name(edge.from), name(edge.to)], edge.objects);
        }
        self.text.family(&family::EDGE_BYTES);
        for edge in &edges {
            self.text
                .sample(&family::EDGE_BYTES, &[name(edge.from), name(edge.to)], edge.bytes);
        }
    }

    fn folded(&mut self) {
        let board = self.board;
        let beyond = |count: usize, limit: usize| if count > limit { count + 1 - limit } else { 0 };
        let requirements = board.requirements.len() + board.requirements_unlisted as usize;
        self.text.family(&family::FOLDED);
        for (label, folded) in [
            ("component", beyond(board.components.len(), self.names.names_max())),
            ("dataset", beyond(board.datasets.len(), self.names.names_max())),
            (
                "requirement",
                requirements.saturating_sub(self.names.requirements_max()),
            ),
        ] {
            self.text.sample(&family::FOLDED, &[label], folded);
        }
    }

    fn one(&mut self, family: &MetricFamily, value: impl std::fmt::Display) {
        self.text.family(family);
        self.text.sample(family, &[], value);
    }

    fn maybe(&mut self, family: &MetricFamily, value: Option<impl std::fmt::Display>) {
        self.text.family(family);
        if let Some(value) = value {
            self.text.sample(family, &[], value);
        }
    }

    fn counter(&mut self, family: &MetricFamily, counter: Counter) {
        self.one(family, self.board.counter(counter));
    }

    fn labelled(&mut self, family: &MetricFamily, counters: &[(&str, Counter)]) {
        self.text.family(family);
        for &(label, counter) in counters {
            self.text.sample(family, &[label], self.board.counter(counter));
        }
    }

    /// Writes a value for each of the names that appeared first, and the sum of the rest; or the sum of all, without a name.
    fn named<'n>(&mut self, family: &MetricFamily, values: impl Iterator<Item = (&'n str, u64)>) {
        self.text.family(family);
        let values: Vec<_> = values.collect();
        if self.names == ShownNames::None {
            let sum: u64 = values.iter().map(|(_, value)| value).sum();
            return self.text.sample(family, &[], sum);
        }
        let limit = self.names.names_max();
        let shown = if values.len() > limit { limit - 1 } else { values.len() };
        let (first, rest) = values.split_at(shown);
        let mut others: u64 = rest.iter().map(|(_, value)| value).sum();
        for &(name, value) in first {
            if name == OTHERS {
                others += value;
            } else {
                self.text.sample(family, &[name], value);
            }
        }
        if others > 0 || !rest.is_empty() || first.iter().any(|(name, _)| *name == OTHERS) {
            self.text.sample(family, &[OTHERS], others);
        }
    }

    fn by_component(&mut self, family: &MetricFamily, value: impl Fn(&BoardClient) -> u64) {
        let board = self.board;
        let mut sums = vec![0; board.components.len()];
        for client in &board.clients {
            if let Some(sum) = sums.get_mut(usize::from(client.component)) {
                *sum += value(client);
            }
        }
        self.named(family, board.components.iter().map(|one| one.name.as_str()).zip(sums));
    }

    /// Writes a value for each of the first named requirements; none where their names are not shown.
    fn of_requirements(&mut self, family: &MetricFamily, value: impl Fn(&BoardRequirement) -> Option<f64>) {
        self.text.family(family);
        if self.names == ShownNames::None {
            return;
        }
        for requirement in self.board.requirements.iter().take(self.names.requirements_max()) {
            if let Some(value) = value(requirement) {
                self.text.sample(family, &[&requirement.name], value);
            }
        }
    }

    fn histogram(&mut self, family: &MetricFamily, values: &BoardHistogramSnapshot, power: u32, unit: f64) {
        self.text.family(family);
        let bounds: Vec<_> = (power..power + BOUNDS)
            .map(|power| (4_f64.powi(power as i32) / unit, values.up_to_power_of_four(power)))
            .collect();
        self.text
            .histogram(family, &bounds, values.count(), values.sum as f64 / unit);
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use junctura_board::reader::board_words;
    use junctura_board::{BoardComponent, BoardDataset, BoardIdentity, BoardReader, BoardWriter};

    use super::*;

    fn board(components: usize) -> BoardSnapshot {
        let mut writer = BoardWriter::new(board_words(), &BoardIdentity::default());
        writer.publish(|edit| {
            for place in 0..components {
                let name = format!(
                    "component {}",
                    char::from(b'a' + (place % 26) as u8).to_string().repeat(1 + place / 26)
                );
                edit.component(
                    place,
                    &BoardComponent {
                        name: name.as_str(),
                        offered: 1,
                        ..BoardComponent::default()
                    },
                );
            }
            edit.tables(0, components);
        });
        BoardReader::of(writer.words().clone()).unwrap().snapshot()
    }

    fn samples(text: &str, name: &str) -> Vec<(String, usize)> {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn labels_have_a_limit_and_sums_stay() {
        for components in [3, 32, 33, 128] {
            let text = text_of(&board(components), Duration::ZERO, ShownNames::All);
            let offered = samples(&text, "junctura_objects_offered_total{");
            assert_eq!(offered.len(), components.min(32));
            assert_eq!(offered.iter().map(|(_, value)| value).sum::<usize>(), components);
        }
        let text = text_of(&board(128), Duration::ZERO, ShownNames::All);
        assert!(
            text.contains("junctura_labels_folded{label=\"component\"} 97"),
            "{text}"
        );
        let text = text_of(&board(128), Duration::ZERO, ShownNames::Detailed);
        assert_eq!(samples(&text, "junctura_objects_offered_total{").len(), 128);
    }

    #[test]
    fn a_full_board_has_a_bounded_number_of_series() {
        let mut writer = BoardWriter::new(board_words(), &BoardIdentity::default());
        let names: Vec<String> = (0..4096)
            .map(|number| format!("name of some length {number}"))
            .collect();
        writer.publish(|edit| {
            for (place, name) in names.iter().enumerate() {
                let name = name.as_str();
                edit.client(&BoardClient {
                    client: place as u32,
                    name,
                    ..BoardClient::default()
                });
                edit.requirement(&BoardRequirement {
                    name,
                    oldest_owed_age_ns: Some(1),
                    ..BoardRequirement::default()
                });
                edit.component(
                    place,
                    &BoardComponent {
                        name,
                        offered: 1,
                        ..BoardComponent::default()
                    },
                );
                edit.dataset(
                    place,
                    &BoardDataset {
                        name,
                        visible: 1,
                        ..BoardDataset::default()
                    },
                );
            }
            edit.tables(names.len(), names.len());
        });
        let full = BoardReader::of(writer.words().clone()).unwrap().snapshot();
        let text = text_of(&full, Duration::ZERO, ShownNames::All);
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        assert!((900..1600).contains(&series), "{series}");
        assert!(text.len() < 1 << 20, "{}", text.len());
    }

    #[test]
    fn without_names_there_are_sums() {
        let text = text_of(&board(40), Duration::ZERO, ShownNames::None);
        assert!(text.contains("junctura_objects_offered_total 40\n"), "{text}");
        assert!(!text.contains("component a"));
    }

    #[test]
    fn the_text_and_the_guide_have_every_family() {
        let text = text_of(&board(1), Duration::ZERO, ShownNames::Detailed);
        let written: BTreeSet<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let coded = family::ALL
            .iter()
            .map(|one| format!("{} {}", one.name, one.kind.name()));
        assert_eq!(
            written,
            coded.collect::<BTreeSet<_>>().iter().map(String::as_str).collect()
        );
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/monitoring.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with("| `junctura_") || line.starts_with("| `process_"))
            .collect();
        let coded = family::ALL.iter().map(|one| {
            let labels: Vec<_> = one.labels.iter().map(|label| format!("`{label}`")).collect();
            format!(
                "| `{}` | {} | {} | {} |",
                one.name,
                one.kind.name(),
                labels.join(", "),
                one.help
            )
        });
        assert_eq!(rows, coded.collect::<Vec<_>>());
    }
}
