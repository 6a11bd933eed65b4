//! A process of a load, as its coordinator has it.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::Sender;

use junctura::{Code, Error, Result};
use junctura_terminal::program::ProgramWords;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::messages::{CoordinatorOrder, WorkerReport};
use crate::pool::plan;
use crate::store;

const SUBJECT: &str = "a process of the load";

/// The first order to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ProcessTask {
    Pool(plan::WorkerPlan),
    Store(store::StorePlan),
}

/// A report, with its process; `None` is the last.
pub(crate) type Heard<F> = (usize, Option<WorkerReport<F>>);

/// Killed with its last handle, if it has not ended.
pub(crate) struct LoadProcess {
    child: Child,
    orders: ChildStdin,
}

impl LoadProcess {
    /// Starts one; its reports are sent to `words`, under the number `at`.
    pub(crate) fn start<F: DeserializeOwned + Send + 'static>(
        program: &ProgramWords,
        at: usize,
        task: &ProcessTask,
        words: &Sender<Heard<F>>,
    ) -> Result<Self> {
        let mut command = program.command()?;
        let piped = command
            .arg("load")
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = piped.spawn().map_err(|error| failed(&error))?;
        let missing = || Error::new(Code::Io, SUBJECT, "it has no pipes");
        let mut orders = child.stdin.take().ok_or_else(missing)?;
        let lines = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
        let words = words.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(std::result::Result::ok) {
                if let Ok(word) = serde_json::from_str(&line) {
                    let _ = words.send((at, Some(word)));
                }
            }
            let _ = words.send((at, None));
        });
        write_line(&mut orders, task)?;
        Ok(Self { child, orders })
    }

    pub(crate) fn obey(&mut self, order: &CoordinatorOrder) -> Result<()> {
        write_line(&mut self.orders, order)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and waits until it has ended.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|error| failed(&error))
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) {
        let _ = self.child.wait();
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Writes to a process. One that has ended reads nothing; its last report has the reason.
fn write_line(to: &mut impl Write, line: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(line).unwrap_or_default();
    match writeln!(to, "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed(&error)),
        _ => Ok(()),
    }
}

pub(crate) fn died() -> Error {
    Error::new(Code::Disconnected, "load", "a process of the load died")
}

fn failed(error: &std::io::Error) -> Error {
    Error::new(Code::Io, SUBJECT, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A pipe whose reader gives this error.
    struct Pipe(ErrorKind);

    impl Write for Pipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_order_to_a_process_that_has_ended_is_no_failure() {
        assert_eq!(
            write_line(&mut Pipe(ErrorKind::BrokenPipe), &CoordinatorOrder::End),
            Ok(())
        );
        let full = write_line(&mut Pipe(ErrorKind::StorageFull), &CoordinatorOrder::End);
        assert_eq!(full.map_err(|error| error.code()), Err(Code::Io));
    }
}
