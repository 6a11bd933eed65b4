//! Processes that begin together, and what they report.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::ProgressBar;
use junctura::{Code, Error, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::program::ProgramWords;

use super::{LaneFigures, StorePlan, StoreRole};
use crate::messages::{CoordinatorOrder, WorkerReport};
use crate::process::{Heard, LoadProcess, ProcessTask, died};
use crate::stamp::now_ns;

/// Time for every process to receive the start before it.
const START_DELAY_NS: u64 = 50_000_000;
/// How long Ctrl-C may have to wait.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) struct WorkerGroup<'a> {
    members: Vec<GroupWorker>,
    words: Receiver<Heard<LaneFigures>>,
    interrupt: &'a InterruptFlag,
    progress: &'a ProgressBar,
}

struct GroupWorker {
    role: StoreRole,
    process: LoadProcess,
    is_ready: bool,
    done: u64,
    figures: Option<LaneFigures>,
}

impl<'a> WorkerGroup<'a> {
    /// Starts a process for each plan.
    pub(super) fn start(
        program: &ProgramWords,
        plans: Vec<StorePlan>,
        interrupt: &'a InterruptFlag,
        progress: &'a ProgressBar,
    ) -> Result<Self> {
        let (sender, words) = channel();
        let member = |(at, plan): (usize, StorePlan)| -> Result<GroupWorker> {
            Ok(GroupWorker {
                role: plan.role,
                process: LoadProcess::start(program, at, &ProcessTask::Store(plan), &sender)?,
                is_ready: false,
                done: 0,
                figures: None,
            })
        };
        Ok(Self {
            members: plans.into_iter().enumerate().map(member).collect::<Result<_>>()?,
            words,
            interrupt,
            progress,
        })
    }

    /// Starts all processes together; processes that run until the end are stopped when the others are done.
    pub(super) fn go(mut self) -> Result<WorkerResults> {
        while self.members.iter().any(|member| !member.is_ready) {
            self.hear()?;
        }
        let at_ns = now_ns() + START_DELAY_NS;
        self.tell(|_| true, &CoordinatorOrder::Start { at_ns })?;
        self.await_reports(|role| !role.follows())?;
        self.tell(StoreRole::follows, &CoordinatorOrder::End)?;
        self.await_reports(StoreRole::follows)?;
        Ok(WorkerResults(
            self.members.drain(..).filter_map(GroupWorker::end).collect(),
        ))
    }

    fn tell(&mut self, whom: impl Fn(StoreRole) -> bool, order: &CoordinatorOrder) -> Result<()> {
        let mut members = self.members.iter_mut().filter(|member| whom(member.role));
        members.try_for_each(|member| member.process.obey(order))
    }

    fn await_reports(&mut self, of: impl Fn(StoreRole) -> bool) -> Result<()> {
        while self
            .members
            .iter()
            .any(|member| of(member.role) && member.figures.is_none())
        {
            self.hear()?;
            self.progress
                .set_position(self.members.iter().map(|member| member.done).sum());
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<()> {
        let heard = self.words.recv_timeout(LOOK_EVERY);
        self.interrupt.check()?;
        let (at, word) = match heard {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(died()),
        };
        let member = &mut self.members[at];
        match word {
            None if member.figures.is_none() => return Err(died()),
            None => {}
            Some(WorkerReport::Ready) => member.is_ready = true,
            Some(WorkerReport::Progress { done }) => member.done = done,
            Some(WorkerReport::Report(figures)) => member.figures = Some(*figures),
            Some(WorkerReport::Failed { code, text }) => {
                let code = Code::from_name(&code).unwrap_or(Code::Io);
                return Err(Error::new(code, "a process of the load", text));
            }
        }
        Ok(())
    }
}

/// The results of each process.
pub(super) struct WorkerResults(Vec<(StoreRole, LaneFigures)>);

impl WorkerResults {
    /// Those of a role together; none, if there were none.
    pub(super) fn of(&self, role: StoreRole) -> Option<LaneFigures> {
        let of_role = self.0.iter().filter(|(other, _)| *other == role);
        of_role.map(|(_, figures)| *figures).reduce(|mut sum, figures| {
            sum.add(&figures);
            sum
        })
    }
}

impl GroupWorker {
    fn end(mut self) -> Option<(StoreRole, LaneFigures)> {
        self.process.wait();
        Some((self.role, self.figures?))
    }
}
