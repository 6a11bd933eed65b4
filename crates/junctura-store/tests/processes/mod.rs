//! Tests that start themselves as other processes, each for one part of a story.

use std::ffi::OsStr;
use std::process::Command;

/// Says to a process that is started by a test which store it is about, and as whom.
const STORE: &str = "JUNCTURA_TEST_STORE";
const WHO: &str = "JUNCTURA_TEST_WHO";

/// This program once more, for a test of it that is left out otherwise: the function itself is given.
pub(crate) fn itself(test: impl Fn(), store: impl AsRef<OsStr>, who: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", path_of(test), "--ignored", "--nocapture"]);
    command.env(STORE, store).env(WHO, who);
    command
}

/// The path by which the test runner knows a test: without the name of the program.
fn path_of<T: Fn()>(_test: T) -> &'static str {
    std::any::type_name::<T>()
        .split_once("::")
        .expect("a function of this program")
        .1
}

/// The arguments of a started process: the path or URL of the store, and the process's part. `None` if no test has started this process.
pub(crate) fn told() -> Option<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok();
    Some((variable(STORE)?, variable(WHO)?))
}
