//! The explanation of a row: the output of `junctura explain`, which runs as a process of its own, since a server that hangs never
//! answers it.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};

use junctura::{Code, Error, Result};
use junctura_terminal::program::ProgramWords;

use crate::top::tables::TableRow;

/// Bytes of an explanation that are shown.
const BYTES_MAX: u64 = 1 << 20;

/// The text that is shown in place of the table.
#[derive(Debug)]
pub(super) struct ExplanationPane {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
    /// The first line that is shown.
    pub(super) first: usize,
    running: Option<RunningExplain>,
}

#[derive(Debug)]
struct RunningExplain {
    child: Child,
    output: Receiver<String>,
}

impl ExplanationPane {
    /// Starts to explain a row.
    pub(super) fn start(program: &ProgramWords, url: &str, row: &TableRow) -> Self {
        let mut pane = Self {
            title: format!("junctura explain {}", row.explain.join(" ")),
            lines: vec!["asks the server …".to_owned()],
            first: 0,
            running: None,
        };
        match run(program, url, row) {
            Ok(running) => pane.running = Some(running),
            Err(error) => pane.lines = vec![error.to_string()],
        }
        pane
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.running.is_some()
    }

    /// Takes the explanation, if it has arrived.
    pub(super) fn receive(&mut self) {
        let Some(running) = &self.running else { return };
        match running.output.try_recv() {
            Err(TryRecvError::Empty) => return,
            Ok(text) => self.lines = text.lines().map(str::to_owned).collect(),
            Err(TryRecvError::Disconnected) => self.lines = vec!["it has ended without an answer".to_owned()],
        }
        self.running = None;
    }

    /// Scrolls by lines.
    pub(super) fn scroll(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.first = self.first.saturating_add_signed(by).min(last);
    }
}

impl Drop for RunningExplain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(program: &ProgramWords, url: &str, row: &TableRow) -> Result<RunningExplain> {
    let failed = |error: std::io::Error| Error::new(Code::Io, "junctura explain", error.to_string());
    let mut command = program.command()?;
    command.args(["explain", "--pool", url]).args(&row.explain);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let streams = (child.stdout.take(), child.stderr.take());
    let (send, output) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        // The messages of the command are short: they fit into their pipe until its output has ended.
        if let (Some(out), Some(messages)) = streams {
            let _ = out.take(BYTES_MAX).read_to_end(&mut bytes);
            let _ = messages.take(BYTES_MAX).read_to_end(&mut bytes);
        }
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    };
    let running = RunningExplain { child, output };
    std::thread::Builder::new().spawn(read).map_err(failed)?;
    Ok(running)
}
