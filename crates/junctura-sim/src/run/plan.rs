//! The kind of run that a seed makes: how many clients, how tight the limits, which requests are frequent.
//!
//! Runs differ on purpose. A run that mixes everything evenly hardly ever reaches a full pool or a long queue; one that
//! does little else does so at once.

use std::time::Duration;

use junctura_pool::{PoolConfig, PoolLimits, SpillConfig};

use crate::clients::requests::component_name;
use crate::model::Rules;
use crate::run::rng::Rng;
use crate::run::universe::Universe;

/// The next action of a client; the numbers are the places of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names explain themselves")]
pub enum Deed {
    OfferInline,
    OfferSlot,
    Lease,
    Demand,
    Cancel,
    List,
    Follow,
    Require,
    Withdraw,
    WithdrawAll,
    Subscribe,
    Stop,
    Release,
    Return,
    Stat,
    Nonsense,
    Drain,
    Retract,
    Wanted,
    Open,
    Stage,
    StageSlot,
    Seal,
    Abort,
    Name,
    Sync,
    Archived,
    Tally,
}

impl Deed {
    const ALL: [(Self, usize); 28] = [
        (Self::OfferInline, 20),
        (Self::OfferSlot, 14),
        (Self::Lease, 4),
        (Self::Demand, 8),
        (Self::Cancel, 2),
        (Self::List, 3),
        (Self::Follow, 7),
        (Self::Require, 4),
        (Self::Withdraw, 5),
        (Self::WithdrawAll, 1),
        (Self::Subscribe, 2),
        (Self::Stop, 3),
        (Self::Release, 22),
        (Self::Return, 2),
        (Self::Stat, 1),
        (Self::Nonsense, 1),
        (Self::Drain, 1),
        (Self::Retract, 1),
        (Self::Wanted, 2),
        (Self::Open, 3),
        (Self::Stage, 10),
        (Self::StageSlot, 6),
        (Self::Seal, 2),
        (Self::Abort, 1),
        (Self::Name, 3),
        (Self::Sync, 2),
        (Self::Archived, 4),
        (Self::Tally, 3),
    ];
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A client does something.
    Act,
    /// The server reads from a client.
    Serve,
    /// A client reads from the server.
    Receive,
    /// Time passes.
    Wait,
    /// A client crashes, or disconnects normally.
    Crash,
    /// The server has nothing else to do.
    Idle,
    /// The file tier writes something, or fails to.
    Disk,
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Clients at once.
    pub clients: usize,
    /// Values of the keys' attributes.
    pub times: i64,
    /// The same.
    pub numbers: i64,
    /// The options of the pool.
    pub rules: Rules,
    /// Milliseconds that an offer waits for memory.
    pub offer_timeout_ms: Option<u64>,
    /// Payloads are at most this long.
    pub payload_bytes_max: u64,
    /// One segment in so many cannot be made; 0: all can.
    pub refuses_one_in: usize,
    /// Of a hundred deliveries, those that are released at once.
    pub released_at_once: usize,
    /// A client may request the end of the pool.
    pub drains: bool,
    /// Of a hundred follows, those through requirements with names.
    pub through_names: usize,
    /// So many objects are there before the run begins: enough for a list of several pages.
    pub crowd: usize,
    /// Of a hundred offers, those with `if_wanted`.
    pub if_wanted: usize,
    /// Of a hundred offers those that are durable.
    pub durable: usize,
    /// Of a hundred releases, those before which the client reports the objects as archived. Such runs are of archivers:
    /// memory is short, and objects stay long.
    pub archives: usize,
    /// Of a hundred payloads, those that the disk refuses.
    pub disk_refuses: usize,
    /// Of a hundred clients, those on other machines.
    pub links: usize,
    deeds: Vec<(Deed, usize)>,
    turns: Vec<(Turn, usize)>,
}

impl Plan {
    /// The plan of a seed. `recorded` runs keep what the judge of histories needs to know.
    #[must_use]
    pub fn of(seed: u64, recorded: bool) -> Self {
        let rng = &mut Rng::of_step(seed, 0);
        // Each kind of request is left out, usual, or frequent.
        let strength = [0, 1, 1, 2, 5];
        let deeds = Deed::ALL.map(|(deed, usual)| (deed, usual * rng.pick(&strength).unwrap_or(1)));
        let mut deeds = deeds.to_vec();
        deeds[0].1 += 5;
        deeds[12].1 += 5;
        let tight = |rng: &mut Rng, chance: usize, low: u64, high: u64, wide: u64| {
            if rng.percent(chance) {
                rng.between(low, high)
            } else {
                wide
            }
        };
        let unrecorded = |rng: &mut Rng, chance: usize, low: u64, high: u64, wide: u64| {
            if recorded {
                wide
            } else {
                tight(rng, chance, low, high, wide)
            }
        };
        let rules = Rules {
            budget_bytes: [4 << 10, 64 << 10, 300 << 10, 1 << 20, 64 << 20][rng.below(5)],
            spill_bytes: None,
            inline_bytes_max: [64, 256, 1024][rng.below(3)],
            segments_per_client: tight(rng, 20, 1, 3, 4096) as usize,
            held_per_client: tight(rng, 15, 1, 6, 1 << 20) as usize,
            requests_per_client: tight(rng, 10, 2, 8, 1 << 20) as usize,
            waiting_offers_per_client: tight(rng, 20, 1, 3, 4096) as usize,
            queued_per_follow: unrecorded(rng, 10, 2, 6, 4_000_000) as usize,
            event_backlog_bytes: tight(rng, 20, 200, 2000, 64 << 20) as usize,
            errors_per_client: tight(rng, 20, 0, 3, 1000) as u32,
            named_requirements: tight(rng, 20, 1, 2, 1024) as usize,
            stuck_after_ns: tight(rng, 50, 1, 100, 60_000) * 1_000_000,
            lease_first_for_ns: 10_000_000_000,
            orphan_timeout_ns: tight(rng, 60, 1, 100, 60_000) * 1_000_000,
            leaving_at_once: 256,
            told_at_once: usize::MAX,
            changed_at_once: usize::MAX,
            looked_at_once: 1000,
            components: 0,
            tombstones: unrecorded(rng, 20, 0, 6, 32_768) as usize,
            tombstones_per_dataset: unrecorded(rng, 20, 0, 4, 10_000) as usize,
            tombstone_age_ns: unrecorded(rng, 40, 1, 200, 600_000) * 1_000_000,
        };
        let crash = [0, 1, 2, 6][rng.below(4)];
        // Drawn apart, so that what seeds without a file tier do stays what it was.
        let apart = &mut Rng::of_step(seed, u64::MAX);
        let spill_bytes = apart
            .percent(30)
            .then(|| [8 << 10, 100 << 10, 16 << 20][apart.below(3)]);
        let disk_refuses = [0, 0, 20][apart.below(3)];
        let links = [0, 0, 0, 0, 0, 0, 0, 40, 100][apart.below(9)];
        let mut rules = Rules { spill_bytes, ..rules };
        if !recorded {
            rules.vary(&mut Rng::of_step(seed, u64::MAX - 1));
            rules.divide(&mut Rng::of_step(seed, u64::MAX - 4));
            rules.tell_later(&mut Rng::of_step(seed, u64::MAX - 5));
        }
        if spill_bytes.is_some() && apart.percent(70) {
            rules.budget_bytes = [2 << 10, 8 << 10, 64 << 10, 200 << 10][apart.below(4)];
        }
        let mut turns = vec![
            (Turn::Act, 20 + rng.below(40)),
            (Turn::Serve, 20 + rng.below(20)),
            (Turn::Receive, 10 + rng.below(30)),
            (Turn::Wait, rng.below(8)),
            (Turn::Crash, crash),
            (Turn::Idle, 1),
        ];
        if spill_bytes.is_some() {
            turns.push((Turn::Disk, 1 + apart.below(20)));
        }
        let clients = rng.between(2, 8) as usize;
        let (times, numbers) = (rng.between(1, 3) as i64, rng.between(1, 4) as i64);
        if !recorded && rng.below(400) == 0 {
            return Self::crowded(clients, deeds, turns, &rules);
        }
        let plan = Self {
            clients,
            times,
            numbers,
            crowd: 0,
            drains: !recorded && rng.percent(15),
            offer_timeout_ms: [None, Some(5), Some(50)][rng.below(3)],
            payload_bytes_max: [100, 3000, 100_000][rng.below(3)],
            refuses_one_in: [0, 0, 3][rng.below(3)],
            released_at_once: [0, 30, 90][rng.below(3)],
            if_wanted: [0, 0, 40][rng.below(3)],
            durable: [0, 0, 40][rng.below(3)],
            through_names: [25, 25, 80][rng.below(3)],
            archives: 0,
            disk_refuses,
            links,
            rules,
            deeds,
            turns,
        };
        plan.with_archivers(&mut Rng::of_step(seed, u64::MAX - 3))
    }

    /// In some runs, drawn apart as well, readers archive what they release.
    fn with_archivers(mut self, rng: &mut Rng) -> Self {
        if rng.percent(80) {
            return self;
        }
        self.archives = 90;
        self.through_names = 60;
        self.rules.budget_bytes = [4 << 10, 16 << 10, 64 << 10, 300 << 10][rng.below(4)];
        self.payload_bytes_max = self.payload_bytes_max.min(self.rules.budget_bytes / 4);
        for (deed, weight) in &mut self.deeds {
            *weight += match deed {
                Deed::Follow | Deed::Release => 20,
                Deed::OfferInline | Deed::OfferSlot => 10,
                Deed::Require => 4,
                _ => 0,
            };
        }
        self
    }

    fn crowded(clients: usize, deeds: Vec<(Deed, usize)>, turns: Vec<(Turn, usize)>, rules: &Rules) -> Self {
        let rules = Rules {
            budget_bytes: 64 << 20,
            tombstones: 32_768,
            tombstones_per_dataset: 10_000,
            errors_per_client: 1000,
            components: 0,
            ..rules.clone()
        };
        Self {
            clients,
            times: 3,
            numbers: 220,
            crowd: 1200,
            drains: false,
            offer_timeout_ms: None,
            payload_bytes_max: 100,
            refuses_one_in: 0,
            released_at_once: 90,
            if_wanted: 0,
            durable: 0,
            archives: 0,
            through_names: 25,
            disk_refuses: 0,
            links: 0,
            rules,
            deeds,
            turns,
        }
    }

    /// A plan for tests that choose each step: limits that are never reached, and nothing by chance.
    #[must_use]
    pub(crate) fn calm(clients: usize) -> Self {
        let wide = Self::of(0, true).rules;
        Self {
            clients,
            times: 1,
            numbers: 1,
            crowd: 0,
            drains: false,
            offer_timeout_ms: None,
            payload_bytes_max: 0,
            refuses_one_in: 0,
            released_at_once: 0,
            if_wanted: 0,
            durable: 0,
            archives: 0,
            through_names: 0,
            disk_refuses: 0,
            links: 0,
            rules: Rules {
                spill_bytes: None,
                budget_bytes: 64 << 20,
                inline_bytes_max: 256,
                segments_per_client: 4096,
                held_per_client: 1 << 20,
                requests_per_client: 1 << 20,
                waiting_offers_per_client: 4096,
                event_backlog_bytes: 64 << 20,
                errors_per_client: 1000,
                named_requirements: 1024,
                stuck_after_ns: 60_000_000_000,
                ..wide
            },
            deeds: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Draws a client's next action.
    pub fn deed(&self, rng: &mut Rng) -> Deed {
        weighted(rng, &self.deeds).unwrap_or(Deed::Stat)
    }

    /// Draws the next step.
    pub fn turn(&self, rng: &mut Rng) -> Turn {
        weighted(rng, &self.turns).unwrap_or(Turn::Act)
    }

    /// The configuration of the pool.
    #[must_use]
    pub fn config(&self, universe: &Universe) -> PoolConfig {
        let rules = &self.rules;
        PoolConfig {
            schemas: universe.schemas.clone(),
            incarnation: crate::INCARNATION,
            pid: 0,
            host: String::new(),
            budget_bytes: rules.budget_bytes,
            spill: rules.spill_bytes.map(|limit_bytes| SpillConfig {
                directory: "/nowhere".into(),
                limit_bytes,
            }),
            inline_bytes_max: rules.inline_bytes_max,
            checked: false,
            tombstones_per_dataset: rules.tombstones_per_dataset,
            tombstones: rules.tombstones,
            tombstone_age: Duration::from_nanos(rules.tombstone_age_ns),
            stuck_after: Duration::from_nanos(rules.stuck_after_ns),
            hoarding_after: Some(Duration::MAX),
            record_budget_bytes: None,
            lease_first_for: Duration::from_nanos(rules.lease_first_for_ns),
            orphan_timeout: Duration::from_nanos(rules.orphan_timeout_ns),
            leaving_at_once: rules.leaving_at_once,
            delivered_at_once: usize::MAX,
            told_at_once: rules.told_at_once,
            served_at_once: usize::MAX,
            due_at_once: usize::MAX,
            changed_at_once: rules.changed_at_once,
            looked_at_once: rules.looked_at_once,
            until_gone: (0..rules.components).map(component_name).collect(),
            limits: PoolLimits {
                segments_per_client: rules.segments_per_client,
                held_per_client: rules.held_per_client,
                requests_per_client: rules.requests_per_client,
                waiting_offers_per_client: rules.waiting_offers_per_client,
                queued_per_follow: rules.queued_per_follow,
                event_backlog_bytes: rules.event_backlog_bytes,
                errors_per_client: rules.errors_per_client,
                named_requirements: rules.named_requirements,
                ..PoolLimits::default()
            },
        }
    }
}

impl Rules {
    /// In some runs much is done in parts, drawn apart as well.
    fn divide(&mut self, rng: &mut Rng) {
        if rng.percent(60) {
            return;
        }
        self.changed_at_once = [1, 1, 2, 3, 7, 64][rng.below(6)];
        if rng.percent(75) {
            self.leaving_at_once = rng.between(1, 4) as usize;
        }
        // Which tombstones make room for which depends on the turns.
        (self.tombstones, self.tombstones_per_dataset) = (32_768, 10_000);
    }

    /// In some runs interests receive news in turns.
    fn tell_later(&mut self, rng: &mut Rng) {
        if rng.percent(30) {
            self.told_at_once = rng.between(0, 3) as usize;
        }
    }

    /// Varies properties that some runs have, drawn separately as well.
    fn vary(&mut self, rng: &mut Rng) {
        if rng.percent(25) {
            self.leaving_at_once = rng.between(1, 4) as usize;
            // Which tombstones make room for which depends on the turns.
            (self.tombstones, self.tombstones_per_dataset) = (32_768, 10_000);
        }
        if rng.percent(10) {
            self.components = rng.between(1, 3) as usize;
        }
        if rng.percent(25) {
            self.looked_at_once = rng.between(0, 3) as usize;
        }
        if rng.percent(25) {
            self.lease_first_for_ns = rng.between(0, 20) * 1_000_000;
        }
    }
}

fn weighted<T: Copy>(rng: &mut Rng, among: &[(T, usize)]) -> Option<T> {
    let mut left = rng.below(among.iter().map(|(_, weight)| weight).sum());
    for &(one, weight) in among {
        if left < weight {
            return Some(one);
        }
        left -= weight;
    }
    None
}
