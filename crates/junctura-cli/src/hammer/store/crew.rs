//! Processes that begin together, and what they report.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::ProgressBar;
use junctura::{Code, Error, Result};

use super::{Figures, Plan, Role};
use crate::hammer::messages::{Order, Said};
use crate::hammer::process::{Heard, Process, Task, died};
use crate::hammer::stamp::now_ns;
use crate::program::Program;
use crate::terminal::interrupt::Interrupt;

/// Time for every process to hear of the start before it comes.
const START_DELAY_NS: u64 = 50_000_000;
/// How long Ctrl-C may have to wait.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) struct Crew<'a> {
    members: Vec<Member>,
    words: Receiver<Heard<Figures>>,
    interrupt: &'a Interrupt,
    progress: &'a ProgressBar,
}

struct Member {
    role: Role,
    process: Process,
    is_ready: bool,
    done: u64,
    figures: Option<Figures>,
}

impl<'a> Crew<'a> {
    /// Starts a process for each plan.
    pub(super) fn start(
        program: &Program,
        plans: Vec<Plan>,
        interrupt: &'a Interrupt,
        progress: &'a ProgressBar,
    ) -> Result<Self> {
        let (sender, words) = channel();
        let member = |(at, plan): (usize, Plan)| -> Result<Member> {
            Ok(Member {
                role: plan.role,
                process: Process::start(program, at, &Task::Store(plan), &sender)?,
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

    /// Lets them begin together; those who follow are told when the others are done.
    pub(super) fn go(mut self) -> Result<Reported> {
        while self.members.iter().any(|member| !member.is_ready) {
            self.hear()?;
        }
        let at_ns = now_ns() + START_DELAY_NS;
        self.tell(|_| true, &Order::Start { at_ns })?;
        self.await_reports(|role| !role.follows())?;
        self.tell(Role::follows, &Order::End)?;
        self.await_reports(Role::follows)?;
        Ok(Reported(self.members.drain(..).filter_map(Member::end).collect()))
    }

    fn tell(&mut self, whom: impl Fn(Role) -> bool, order: &Order) -> Result<()> {
        let mut members = self.members.iter_mut().filter(|member| whom(member.role));
        members.try_for_each(|member| member.process.obey(order))
    }

    fn await_reports(&mut self, of: impl Fn(Role) -> bool) -> Result<()> {
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
            Some(Said::Ready) => member.is_ready = true,
            Some(Said::Progress { done }) => member.done = done,
            Some(Said::Report(figures)) => member.figures = Some(*figures),
            Some(Said::Failed { code, text }) => {
                let code = Code::from_name(&code).unwrap_or(Code::Io);
                return Err(Error::new(code, "a process of the load", text));
            }
        }
        Ok(())
    }
}

/// What each process has done.
pub(super) struct Reported(Vec<(Role, Figures)>);

impl Reported {
    /// Those of a role together; none, if there were none.
    pub(super) fn of(&self, role: Role) -> Option<Figures> {
        let of_role = self.0.iter().filter(|(other, _)| *other == role);
        of_role.map(|(_, figures)| *figures).reduce(|mut sum, figures| {
            sum.add(&figures);
            sum
        })
    }
}

impl Member {
    fn end(mut self) -> Option<(Role, Figures)> {
        self.process.wait();
        Some((self.role, self.figures?))
    }
}
