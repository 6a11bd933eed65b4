//! Messages between the coordinator of a load and its processes: a line of JSON each.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use junctura::{Code, Error, Result};
use serde::{Deserialize, Serialize};

use crate::pool::report::WorkerFigures;

/// An order of the coordinator to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum CoordinatorOrder {
    /// The load begins at this time of the monotonic clock.
    Start { at_ns: u64 },
    /// The numbers of objects that each producer has offered: a process that has received its share is done.
    Expect { by_producer: Vec<u64> },
    /// The run is over.
    End,
}

impl CoordinatorOrder {
    /// Nothing more will arrive: what a process has received is its share.
    pub(crate) fn enough() -> Self {
        Self::Expect {
            by_producer: Vec::new(),
        }
    }
}

/// A report of a process of a pool's load to the coordinator.
pub(crate) type Word = WorkerReport<WorkerFigures>;

/// A report of a process to the coordinator, at the end its figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkerReport<F> {
    Ready,
    /// Objects so far.
    Progress {
        done: u64,
    },
    Report(Box<F>),
    Failed {
        code: String,
        text: String,
    },
}

/// The orders of the coordinator that were read so far.
#[derive(Clone, Default)]
pub(crate) struct OrderReader(Arc<Mutex<WorkerReports>>);

#[derive(Default)]
struct WorkerReports {
    expect: Option<Vec<u64>>,
    is_over: bool,
}

impl OrderReader {
    /// How many objects each producer has offered, once that is known.
    pub(crate) fn expected(&self) -> Option<Vec<u64>> {
        self.0.lock().ok()?.expect.clone()
    }

    /// Whether the run is over, or its coordinator has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().is_ok_and(|heard| heard.is_over)
    }

    /// Acts as if the coordinator had ended the run.
    #[cfg(test)]
    pub(crate) fn end(&self) {
        self.hear(None);
    }

    fn hear(&self, line: Option<&str>) {
        let Ok(mut heard) = self.0.lock() else { return };
        match line.and_then(|line| serde_json::from_str(line).ok()) {
            Some(CoordinatorOrder::Expect { by_producer }) => heard.expect = Some(by_producer),
            Some(CoordinatorOrder::Start { .. }) => {}
            Some(CoordinatorOrder::End) | None => heard.is_over = true,
        }
    }
}

/// Reads the coordinator's orders on a thread, while the process works.
pub(crate) fn listen(lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static) -> OrderReader {
    let orders = OrderReader::default();
    let heard = orders.clone();
    std::thread::spawn(move || {
        for line in lines.map_while(std::result::Result::ok) {
            heard.hear(Some(&line));
        }
        heard.hear(None);
    });
    orders
}

/// The next word.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(line: Option<std::io::Result<String>>) -> Result<T> {
    let broken = |cause: String| Error::new(Code::Protocol, "load", cause);
    let line = line
        .ok_or_else(|| broken("the coordinator is gone".to_owned()))?
        .map_err(|e| broken(e.to_string()))?;
    serde_json::from_str(&line).map_err(|error| broken(error.to_string()))
}

/// Reports that this process can begin; returns its start time.
pub(crate) fn begin<F: Serialize>(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Result<u64> {
    say(&WorkerReport::<F>::Ready)?;
    match read(lines.next())? {
        CoordinatorOrder::Start { at_ns } => Ok(at_ns),
        other => {
            let cause = format!("{other:?} before the start");
            Err(Error::new(Code::Protocol, "load", cause))
        }
    }
}

/// Reports an error to the coordinator, too.
pub(crate) fn or_tell<T, F: Serialize>(outcome: Result<T>) -> Result<T> {
    if let Err(error) = &outcome {
        say(&WorkerReport::<F>::Failed {
            code: error.code().name().to_owned(),
            text: error.to_string(),
        })?;
    }
    outcome
}

/// Sleeps to pace a load; not to wait for an event.
#[expect(clippy::disallowed_methods, reason = "a load has a pace")]
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Sends a report to the coordinator.
pub(crate) fn say<F: Serialize>(word: &WorkerReport<F>) -> Result<()> {
    let gone = |error: std::io::Error| Error::new(Code::Disconnected, "load", error.to_string());
    let line = serde_json::to_string(word).map_err(|error| gone(error.into()))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(gone)
}
