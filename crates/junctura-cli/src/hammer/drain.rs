//! The end of a load in which processes come and go: everyone leaves but those that then take what is left.

use indicatif::ProgressBar;
use junctura::{Pool, Result};

use super::coordinator::{Run, Worker};
use super::plan::{Role, group_name};
use super::talk::Order;

impl Run<'_> {
    /// Everything is offered: members leave but the one of each group that closes it; then these, and the consumers in no
    /// group, take what is left.
    pub(super) fn drain(&mut self, progress: &ProgressBar) -> Result<()> {
        self.await_deaths()?;
        let leaves = |worker: &Worker| worker.plan.role == Role::Consumer && !worker.plan.closes;
        let enough = Order::Expect {
            by_producer: Vec::new(),
        };
        self.tell(|_, worker| leaves(worker), &enough)?;
        self.await_reports(leaves, progress)?;
        self.tell(|_, worker| worker.plan.closes, &enough)
    }

    /// Removes the groups; gives the number of objects that they were still owed.
    pub(super) fn end_groups(&self, pool: &Pool) -> Result<u64> {
        (0..self.arguments.groups)
            .map(|group| pool.retract(&group_name(group)))
            .sum()
    }
}
