//! The server's memory during a load, sampled three times to show growth.

use std::collections::VecDeque;
use std::time::Duration;

use junctura::{Pool, Result};

use crate::pool::PoolLoadArguments;
use crate::pool::coordinator::ServerFigures;
use crate::pool::report::{LoadTimes, ServerMemory};
use crate::stamp::now_ns;

/// Samples the server's memory at the due times.
pub(crate) struct MemoryWatch<'a> {
    pool: &'a Pool,
    /// When it is still to be looked at.
    due_ns: VecDeque<u64>,
    seen: Vec<ServerMemory>,
}

impl<'a> MemoryWatch<'a> {
    /// For a load that begins at this time.
    pub(crate) fn new(pool: &'a Pool, at_ns: u64, arguments: &PoolLoadArguments) -> Self {
        let begin = at_ns + arguments.warmup.as_nanos() as u64;
        let half = arguments.duration.as_nanos() as u64 / 2;
        Self {
            pool,
            due_ns: VecDeque::from([begin, begin + half, begin + 2 * half]),
            seen: Vec::new(),
        }
    }

    /// Looks, if it is time; gives how long it is until the next time, if there is one.
    pub(crate) fn look(&mut self) -> Result<Option<Duration>> {
        while let Some(&due) = self.due_ns.front() {
            if let Some(left) = due.checked_sub(now_ns()).filter(|&left| left > 0) {
                return Ok(Some(Duration::from_nanos(left)));
            }
            self.take()?;
        }
        Ok(None)
    }

    /// Returns the samples; takes the missing ones now.
    pub(crate) fn finish(mut self) -> Result<LoadTimes> {
        while !self.due_ns.is_empty() {
            self.take()?;
        }
        let [begin, middle, end] = [0, 1, 2].map(|at| self.seen.get(at).copied().unwrap_or_default());
        Ok(LoadTimes {
            begin,
            middle,
            end,
            growth_mib: end.rss_anon_mib - middle.rss_anon_mib,
        })
    }

    fn take(&mut self) -> Result<()> {
        self.due_ns.pop_front();
        self.seen.push(ServerFigures::of(self.pool)?.memory);
        Ok(())
    }
}
