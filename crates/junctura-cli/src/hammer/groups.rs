//! Loads through consumer groups: members that are killed and replaced, and the end, at which every group is empty.

use std::time::Duration;

use indicatif::ProgressBar;
use junctura::{Code, Error, Pool, Result};

use super::coordinator::{Run, Worker};
use super::plan::{Role, group_name};
use super::report::Figures;
use super::stamp::now_ns;
use super::talk::Order;

impl Run<'_> {
    /// Kills members while the load goes on, evenly over the first two thirds of the measured time, each group in its turn;
    /// others take their places.
    pub(super) fn kill_some(&mut self, url: &str, payload_bytes: usize) -> Result<()> {
        let kills = self.arguments.kills;
        let from_ns = self.at_ns.unwrap_or_default() + self.arguments.warmup.as_nanos() as u64;
        let time_ns = self.arguments.duration.as_nanos() as u64 * 2 / 3;
        for kill in 0..kills {
            let due_ns = from_ns + time_ns * u64::from(kill + 1) / u64::from(kills);
            while let Some(left_ns) = due_ns.checked_sub(now_ns()).filter(|&left| left > 0) {
                self.hear_within(Duration::from_nanos(left_ns))?;
            }
            self.replace_a_member(kill, url, payload_bytes)?;
        }
        Ok(())
    }

    fn replace_a_member(&mut self, kill: u32, url: &str, payload_bytes: usize) -> Result<()> {
        let may_die = |worker: &Worker| worker.group.is_some() && !worker.closes && worker.figures.is_none();
        let turn = |worker: &Worker| worker.group != Some(kill % self.arguments.groups);
        let oldest = self
            .workers
            .iter_mut()
            .filter(|worker| may_die(worker))
            .min_by_key(|worker| turn(worker));
        let Some(victim) = oldest else { return Ok(()) };
        let group = victim.group;
        // Nothing more is expected of it.
        victim.figures = Some(Figures {
            done: vec![victim.done],
            ..Figures::default()
        });
        let killed = victim.process.kill().and_then(|()| victim.process.wait());
        killed.map_err(|error| Error::new(Code::Io, "a member of a group", error.to_string()))?;
        let mut plan = self
            .arguments
            .plan(Role::Consumer, self.arguments.consumers + kill, url, payload_bytes);
        plan.group = group;
        let mut replacement = Worker::start(self.workers.len(), &plan, &self.sender)?;
        replacement.obey(&Order::Start {
            at_ns: self.at_ns.unwrap_or_default(),
        })?;
        self.workers.push(replacement);
        Ok(())
    }

    /// Everything is offered: all members leave but the one of each group that closes it, and then these take what is left.
    pub(super) fn close_groups(&mut self, progress: &ProgressBar) -> Result<()> {
        let leaves = |worker: &Worker| worker.role == Role::Consumer && !worker.closes;
        let enough = Order::Expect {
            by_producer: Vec::new(),
        };
        self.tell(|_, worker| leaves(worker), &enough)?;
        self.await_reports(leaves, progress)?;
        self.tell(|_, worker| worker.closes, &enough)
    }

    /// Removes the groups; gives the number of objects that they were still owed.
    pub(super) fn end_groups(&self, pool: &Pool) -> Result<u64> {
        (0..self.arguments.groups)
            .map(|group| pool.retract(&group_name(group)))
            .sum()
    }
}
