//! The command line that starts this command again.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use junctura::{Code, Error, Result};

/// The words that start this command: a program and its first arguments (`python -m junctura`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramWords {
    /// Empty: the executable of this process.
    words: Vec<OsString>,
}

impl ProgramWords {
    /// Returns the executable of this process.
    #[must_use]
    pub fn this() -> ProgramWords {
        ProgramWords::default()
    }

    /// Returns these words. Without any, the same as [`ProgramWords::this`].
    #[must_use]
    pub fn of(words: impl IntoIterator<Item = impl Into<OsString>>) -> ProgramWords {
        ProgramWords {
            words: words.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns the Python that runs this command, else `python3`.
    #[must_use]
    pub fn python(&self) -> OsString {
        match &self.words[..] {
            [python, option, _] if option == "-m" => python.clone(),
            _ => OsString::from("python3"),
        }
    }

    /// Returns the command of a module of the Python package, for this Python, else for that of [`ProgramWords::python`].
    #[must_use]
    pub fn module(&self, module: &str, python: Option<&OsString>) -> Command {
        let mut command = Command::new(python.cloned().unwrap_or_else(|| self.python()));
        command.args(["-m", module]);
        command
    }

    /// Replaces this process by a module of the Python package, with its output and exit status. Returns only an error.
    #[must_use]
    pub fn become_module(&self, module: &str, words: Vec<OsString>, python: Option<&OsString>) -> Error {
        if (python.is_some() || self.words.is_empty())
            && let Some(error) = self.lacks_package(python)
        {
            return error;
        }
        let mut command = self.module(module, python);
        no_python(&command.args(words).exec(), &command)
    }

    /// Returns the error of a Python that starts, but does not find the package.
    fn lacks_package(&self, python: Option<&OsString>) -> Option<Error> {
        const FIND: &str = "import importlib.util as i; raise SystemExit(0 if i.find_spec('junctura') else 3)";
        let mut command = Command::new(python.cloned().unwrap_or_else(|| self.python()));
        let status = command.args(["-c", FIND]).status().ok()?;
        let cause = "this Python does not have the package junctura; install it there (pip install PATH, PATH being a wheel or a clone of \
                     Junctura), or name the Python that has it: --python FILE";
        (status.code() == Some(3))
            .then(|| Error::new(Code::Unsupported, command.get_program().display().to_string(), cause))
    }

    /// Returns the command without arguments.
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

/// Returns the error of a Python that cannot be started.
#[must_use]
pub fn no_python(error: &io::Error, command: &Command) -> Error {
    let cause = format!("{error}; the Python package does this: --python selects the Python that has it");
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
