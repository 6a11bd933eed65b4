//! The program as a child: signals are forwarded to it, and its exit status becomes that of the command.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use junctura::{Code, Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// The shell adds this to the number of a signal that ended a program.
const SIGNAL_STATUS: i32 = 128;

/// Runs a command to its end and returns its exit status.
pub(super) fn run_to_end(mut command: Command) -> Result<u8> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])
        .map_err(|error| super::failed("signals", &error))?;
    let subject = command.get_program().display().to_string();
    let mut child = command.spawn().map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound {
            Code::NotFound
        } else {
            Code::Io
        };
        Error::new(code, &subject, error.to_string())
    })?;
    let handle = signals.handle();
    // The terminal sends its signals to all processes in the foreground.
    let has_terminal = std::io::stdin().is_terminal();
    let pid = Pid::from_child(&child);
    let status = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in signals.forever() {
                let is_sent_by_terminal = has_terminal && matches!(number, SIGINT | SIGQUIT);
                if let Some(signal) = Signal::from_named_raw(number).filter(|_| !is_sent_by_terminal) {
                    let _ = kill_process(pid, signal);
                }
            }
        });
        let status = child.wait();
        handle.close();
        status
    });
    status.map(status_of).map_err(|error| super::failed(&subject, &error))
}

fn status_of(status: ExitStatus) -> u8 {
    let number = status.code().or(status.signal().map(|signal| SIGNAL_STATUS + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_that_of_the_program() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_to_end(command).unwrap()
        };
        assert_eq!(run("exit 0"), 0);
        assert_eq!(run("exit 7"), 7);
        assert_eq!(run("kill -9 $$"), 137);
        let error = run_to_end(Command::new("/nowhere/model")).unwrap_err();
        assert_eq!((error.code(), error.subject()), (Code::NotFound, "/nowhere/model"));
    }
}
