//! Commands that become a program of the Python package: their common options, and the command line that the program gets. The program
//! has the defaults, and gets only options that are given.

use std::ffi::{OsStr, OsString};

use clap::Args;

/// The pool and the client name.
#[derive(Args, Debug)]
pub(crate) struct PythonPoolArguments {
    #[arg(
        long,
        value_name = "URL",
        help = "The pool: unix:NAME, unix:/path.sock, unix:@abstract or tcp://HOST:PORT (default: $JUNCTURA_POOL, else unix:default)"
    )]
    pool: Option<OsString>,
    #[arg(
        id = "client_name",
        long = "as",
        visible_alias = "name",
        value_name = "NAME",
        help = "The name of this client in the pool (default: $JUNCTURA_NAME, else junctura and the command)"
    )]
    name: Option<OsString>,
}

impl PythonPoolArguments {
    /// Returns the options with their values.
    pub(crate) const fn values(&self) -> [(&'static str, &Option<OsString>); 2] {
        [("--pool", &self.pool), ("--as", &self.name)]
    }
}

/// A command line of a Python program.
#[derive(Debug, Default)]
pub(crate) struct PythonLine {
    words: Vec<OsString>,
}

impl PythonLine {
    /// Returns a line that begins with a command of the program.
    pub(crate) fn of(command: &str) -> Self {
        Self {
            words: vec![OsString::from(command)],
        }
    }

    /// Adds the options that have a value. A value is in the word of its option, so that it may begin with a dash.
    pub(crate) fn values<'a, V: AsRef<OsStr> + 'a>(
        mut self,
        values: impl IntoIterator<Item = (&'static str, &'a Option<V>)>,
    ) -> Self {
        for (name, value) in values {
            if let Some(value) = value {
                self = self.value(name, value);
            }
        }
        self
    }

    /// Adds an option with its value.
    pub(crate) fn value(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        self.words.push(word);
        self
    }

    /// Adds the options that are set.
    pub(crate) fn flags(mut self, flags: impl IntoIterator<Item = (&'static str, bool)>) -> Self {
        let set = flags.into_iter().filter(|(_, is_set)| *is_set);
        self.words.extend(set.map(|(name, _)| OsString::from(name)));
        self
    }

    /// Returns the line with these arguments behind `--`, so that they may begin with a dash.
    pub(crate) fn end<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Vec<OsString> {
        self.words.push(OsString::from("--"));
        self.words
            .extend(arguments.into_iter().map(|word| word.as_ref().to_os_string()));
        self.words
    }
}
