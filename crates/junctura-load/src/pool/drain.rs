//! The end of a load in which processes are replaced: all processes leave except those that then take the remaining
//! objects.

use indicatif::ProgressBar;
use junctura::{Pool, Result};

use crate::messages::CoordinatorOrder;
use crate::pool::RetentionEnd;
use crate::pool::coordinator::{LoadRun, LoadWorker};
use crate::pool::plan::{WorkerRole, group_name, own_group_name};

impl LoadRun<'_> {
    /// Everything is offered: members leave but the one of each group that closes it; then these take what is left, and at
    /// last the consumers in no group, which thus find nothing that is going while they look.
    pub(crate) fn drain(&mut self, progress: &ProgressBar) -> Result<()> {
        let leaves = |worker: &LoadWorker| worker.plan.role == WorkerRole::Consumer && !worker.plan.closes;
        let closes_group = |worker: &LoadWorker| worker.plan.closes && worker.plan.group.is_some();
        for part in [leaves, closes_group] {
            self.await_deaths()?;
            self.dismiss(part)?;
            self.await_reports(part, progress)?;
        }
        self.await_deaths()?;
        self.dismiss(|worker| worker.plan.closes)
    }

    /// Ends the work of some consumers, and of those that will replace them.
    fn dismiss(&mut self, part: fn(&LoadWorker) -> bool) -> Result<()> {
        self.dismissed.push(part);
        self.tell(|_, worker| part(worker), &CoordinatorOrder::enough())
    }

    /// Removes the groups; gives the number of objects that they were still owed.
    pub(crate) fn end_groups(&self, pool: &Pool) -> Result<u64> {
        let shared = (0..self.arguments.groups).map(group_name);
        let alone = match self.arguments.retention {
            RetentionEnd::Count => 0,
            RetentionEnd::Group => self.arguments.consumers,
        };
        let names = shared.chain((0..alone).map(own_group_name));
        names.map(|name| pool.retract(&name)).sum()
    }
}
