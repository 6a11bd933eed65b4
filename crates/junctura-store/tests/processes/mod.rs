//! Tests that start themselves as other processes, each for one part of a story.

use std::ffi::OsStr;
use std::process::Command;

/// Says to a process that is started by a test which store it is about, and as whom.
const STORE: &str = "JUNCTURA_TEST_STORE";
const WHO: &str = "JUNCTURA_TEST_WHO";

/// This program once more, for a test of it that is left out otherwise.
pub(crate) fn itself(test: &str, store: impl AsRef<OsStr>, who: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command.env(STORE, store).env(WHO, who);
    command
}

/// What a started process was told: the path or URL of the store, and who it is.
pub(crate) fn told() -> (String, String) {
    let variable = |name: &str| std::env::var(name).expect(name);
    (variable(STORE), variable(WHO))
}
