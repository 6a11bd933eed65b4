//! Kills processes during the load and replaces each: the times and the victims are drawn from a seed.
//!
//! ```text
//!   --kills producers=1,members=2 --seed 7
//!      start ----+---------+-------------------+----- 9/10 of the time ---> end
//!             member    producer            member    times and victims are random, the same for the same seed
//! ```
//! The same seed draws the same plan; the state of a process at its kill is random. The next process starts before the
//! pool has noticed the disconnect. Only at the end, before the remaining objects are taken, is every disconnect
//! awaited.

use std::str::FromStr;
use std::time::Duration;

use junctura::{Code, Error, EventKind, Result, Subscription};
use serde::Serialize;

use crate::messages::CoordinatorOrder;
use crate::pool::coordinator::{LoadRun, LoadWorker};
use crate::pool::plan::WorkerRole;
use crate::pool::report::WorkerFigures;
use crate::stamp::now_ns;

/// The target of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillTarget {
    Producer,
    /// A consumer that is in no group.
    Consumer,
    /// A member of a group, but not the one that stays to the end.
    Member,
}

/// How many are killed of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct KillCounts {
    pub(crate) producers: u32,
    pub(crate) consumers: u32,
    pub(crate) members: u32,
}

impl KillCounts {
    pub(crate) fn total(&self) -> u32 {
        self.producers + self.consumers + self.members
    }
}

impl FromStr for KillCounts {
    type Err = String;

    /// `members=10,producers=3,consumers=3`, or a number of members.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number <= COUNT_MAX => Ok(number),
            _ => Err(format!("`{text}` is not a number up to {COUNT_MAX}")),
        };
        let mut kills = Self::default();
        for part in text.split(',') {
            let (kind, count) = part.split_once('=').unwrap_or(("members", part));
            let of_kind = match kind {
                "producers" => &mut kills.producers,
                "consumers" => &mut kills.consumers,
                "members" => &mut kills.members,
                other => return Err(format!("`{other}` is none of producers, consumers, members")),
            };
            *of_kind = number(count)?;
        }
        Ok(kills)
    }
}

const COUNT_MAX: u32 = 100_000;

/// One kill: its time after the start, and its kind; one of the processes of this kind is chosen then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlannedKill {
    after_ns: u64,
    victim: KillTarget,
    pick: u64,
}

/// The kills of a run, in their order.
fn schedule(kills: &KillCounts, seed: u64, time_ns: u64) -> Vec<PlannedKill> {
    let mut random = PlanRandom(seed);
    let kinds = [
        (KillTarget::Producer, kills.producers),
        (KillTarget::Consumer, kills.consumers),
        (KillTarget::Member, kills.members),
    ];
    let mut planned: Vec<PlannedKill> = kinds
        .into_iter()
        .flat_map(|(victim, count)| (0..count).map(move |_| victim))
        .map(|victim| PlannedKill {
            after_ns: random.below(time_ns.max(1)),
            victim,
            pick: random.next(),
        })
        .collect();
    planned.sort_by_key(|kill| kill.after_ns);
    planned
}

/// `SplitMix64`: enough to draw a plan from.
struct PlanRandom(u64);

impl PlanRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Killed processes whose disconnect the pool has not reported yet.
pub(crate) struct UnreportedKills {
    left: Subscription,
    awaited: Vec<u32>,
}

impl UnreportedKills {
    pub(crate) fn watch(pool: &junctura::Pool) -> Result<Self> {
        Ok(Self {
            left: pool.subscribe("", &[EventKind::Left])?,
            awaited: Vec::new(),
        })
    }

    /// Waits until the pool has noticed them all: nothing more arrives from them, and others have the objects that
    /// they held.
    fn await_all(&mut self) -> Result<()> {
        while !self.awaited.is_empty() {
            let event = self.left.next_event()?.ok_or_else(|| {
                Error::new(
                    Code::Disconnected,
                    "load",
                    "the pool ended before it had reported every death",
                )
            })?;
            if let Some(peer) = event.client {
                self.awaited.retain(|&pid| pid != peer.pid);
            }
        }
        Ok(())
    }
}

impl KillTarget {
    fn is(self, worker: &LoadWorker) -> bool {
        worker.is_ready && self.may_become(worker)
    }

    /// Whether a process is of this kind and has not ended; it may still have to connect.
    fn may_become(self, worker: &LoadWorker) -> bool {
        worker.figures.is_none()
            && match self {
                Self::Producer => worker.plan.role == WorkerRole::Producer,
                Self::Consumer => worker.plan.role == WorkerRole::Consumer && worker.plan.group.is_none(),
                Self::Member => worker.plan.group.is_some() && !worker.plan.closes,
            }
    }
}

impl LoadRun<'_> {
    /// Kills processes during the load and replaces them.
    pub(crate) fn kill_some(&mut self) -> Result<()> {
        let from_ns = self.at_ns.unwrap_or_default();
        let time = self.arguments.warmup + self.arguments.duration;
        let time_ns = time.as_nanos() as u64 / 10 * 9;
        for kill in schedule(&self.arguments.kills, self.arguments.seed, time_ns) {
            while let Some(left_ns) = (from_ns + kill.after_ns).checked_sub(now_ns()).filter(|&left| left > 0) {
                self.hear_within(Duration::from_nanos(left_ns))?;
            }
            if let Some(victim) = self.victim(kill)? {
                self.replace(victim)?;
                self.killed += 1;
            }
        }
        Ok(())
    }

    /// Waits until the pool has noticed every kill.
    pub(crate) fn await_deaths(&mut self) -> Result<()> {
        self.deaths.as_mut().map_or(Ok(()), UnreportedKills::await_all)
    }

    /// Chooses a process for the kill, once one has begun. None if all of its kind have ended, as where the machine is so
    /// busy that the kill is late.
    fn victim(&mut self, kill: PlannedKill) -> Result<Option<usize>> {
        loop {
            let may_die: Vec<usize> = (0..self.workers.len())
                .filter(|&at| kill.victim.is(&self.workers[at]))
                .collect();
            if let Some(&at) = may_die.get((kill.pick % may_die.len().max(1) as u64) as usize) {
                return Ok(Some(at));
            }
            if !self.workers.iter().any(|worker| kill.victim.may_become(worker)) {
                return Ok(None);
            }
            self.hear()?;
        }
    }

    /// Whether a process that has lost its connection is an expected one, within the expected number.
    pub(crate) fn may_be_cut(&self, at: usize) -> bool {
        let worker = &self.workers[at];
        let replaced = self.workers.iter().filter(|worker| worker.plan.life > 0).count();
        // The process that takes the rest at the end must exist until then; before it has connected, another may
        // replace it.
        let stays = worker.plan.group.is_some() && worker.plan.closes && worker.is_ready;
        let is_of_load = matches!(worker.plan.role, WorkerRole::Producer | WorkerRole::Consumer);
        is_of_load && !stays && replaced < (self.arguments.kills.total() + self.arguments.cuts) as usize
    }

    pub(crate) fn replace(&mut self, at: usize) -> Result<()> {
        let victim = &mut self.workers[at];
        // Nothing more is expected from it.
        victim.figures = Some(WorkerFigures {
            done: vec![victim.done],
            ..WorkerFigures::default()
        });
        let (pid, has_come) = (victim.process.id(), victim.is_ready);
        victim.process.kill()?;
        let mut plan = victim.plan.clone();
        plan.life += 1;
        plan.index = self.index_of_next(plan.role);
        // No disconnect is reported for one that never connected.
        if let Some(deaths) = &mut self.deaths
            && has_come
        {
            deaths.awaited.push(pid);
        }
        let mut replacement = LoadWorker::start(&self.arguments.program, self.workers.len(), plan, &self.sender)?;
        // Before the load begins, it gets its order with the others.
        if let Some(at_ns) = self.at_ns {
            replacement.process.obey(&CoordinatorOrder::Start { at_ns })?;
        }
        if self.dismissed.iter().any(|part| part(&replacement)) {
            replacement.process.obey(&CoordinatorOrder::enough())?;
        }
        self.workers.push(replacement);
        Ok(())
    }

    fn index_of_next(&self, role: WorkerRole) -> u32 {
        self.workers.iter().filter(|worker| worker.plan.role == role).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_and_others_are_refused() {
        let all = KillCounts {
            producers: 3,
            consumers: 2,
            members: 10,
        };
        assert_eq!("members=10,producers=3,consumers=2".parse(), Ok(all));
        assert_eq!(
            "4".parse::<KillCounts>().map(|kills| (kills.members, kills.total())),
            Ok((4, 4))
        );
        for wrong in [
            "",
            "x",
            "-1",
            "servers=1",
            "members",
            "members=",
            "members=100001",
            "1,,",
        ] {
            assert!(wrong.parse::<KillCounts>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_seed_draws_the_same_plan_again_and_another_draws_another() {
        let kills = KillCounts {
            producers: 3,
            consumers: 2,
            members: 10,
        };
        let plan = schedule(&kills, 7, 1_000_000);
        assert_eq!(plan, schedule(&kills, 7, 1_000_000));
        assert_ne!(plan, schedule(&kills, 8, 1_000_000));
        assert!(plan.is_sorted_by_key(|kill| kill.after_ns));
        assert!(plan.iter().all(|kill| kill.after_ns < 1_000_000));
        let count = |victim| plan.iter().filter(|kill| kill.victim == victim).count();
        let counts = [KillTarget::Producer, KillTarget::Consumer, KillTarget::Member].map(count);
        assert_eq!(counts, [3, 2, 10]);
        assert_eq!(schedule(&KillCounts::default(), 7, 1_000_000), []);
        assert_eq!(schedule(&kills, 7, 0).len(), 15);
    }
}
