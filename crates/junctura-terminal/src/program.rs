//! How this command is started once more.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use junctura::{Code, Error, Result};

/// The words that start this command: a program, and what comes before the arguments (`python -m junctura`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramWords {
    /// None: the file that this process runs.
    words: Vec<OsString>,
}

impl ProgramWords {
    /// The file that this process runs.
    #[must_use]
    pub fn this() -> ProgramWords {
        ProgramWords::default()
    }

    /// These words. Without any, as [`ProgramWords::this`].
    #[must_use]
    pub fn of(words: impl IntoIterator<Item = impl Into<OsString>>) -> ProgramWords {
        ProgramWords {
            words: words.into_iter().map(Into::into).collect(),
        }
    }

    /// The Python that runs this command, else the one that is found by its usual name.
    #[must_use]
    pub fn python(&self) -> OsString {
        match &self.words[..] {
            [python, option, _] if option == "-m" => python.clone(),
            _ => OsString::from("python3"),
        }
    }

    /// A program of the Python package, yet without arguments: of this Python, else of [`ProgramWords::python`].
    #[must_use]
    pub fn module(&self, module: &str, python: Option<&OsString>) -> Command {
        let mut command = Command::new(python.cloned().unwrap_or_else(|| self.python()));
        command.args(["-m", module]);
        command
    }

    /// Becomes a program of the Python package, with its output and exit status; comes back only with what is in the way.
    #[must_use]
    pub fn become_module(&self, module: &str, words: Vec<OsString>, python: Option<&OsString>) -> Error {
        let mut command = self.module(module, python);
        no_python(&command.args(words).exec(), &command)
    }

    /// The command, yet without arguments.
    pub fn command(&self) -> Result<Command> {
        if let Some((program, before)) = self.words.split_first() {
            let mut command = Command::new(program);
            command.args(before);
            return Ok(command);
        }
        let own = std::env::current_exe();
        own.map(Command::new)
            .map_err(|error| Error::new(Code::Io, "junctura", error.to_string()))
    }
}

/// A Python that does not begin.
#[must_use]
pub fn no_python(error: &io::Error, command: &Command) -> Error {
    let cause = format!("{error}; the Python package does this: --python says which Python has it");
    Error::new(Code::Unsupported, command.get_program().display().to_string(), cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_before_the_arguments() {
        let mut command = ProgramWords::of(["python", "-m", "junctura"]).command().unwrap();
        command.arg("stat");
        assert_eq!(command.get_program(), "python");
        assert!(command.get_args().eq(["-m", "junctura", "stat"]));
        assert_eq!(
            ProgramWords::of(["/venv/bin/python", "-m", "junctura"]).python(),
            "/venv/bin/python"
        );
        assert_eq!(ProgramWords::this().python(), "python3");
        let own = ProgramWords::this().command().unwrap();
        assert_eq!(own.get_program(), std::env::current_exe().unwrap());
        assert_eq!(own.get_args().len(), 0);
    }
}
