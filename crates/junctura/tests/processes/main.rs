//! Integration tests of the facade that start, fork or kill processes, or that look at everything this process has open.
//!
//! They run one at a time ([`alone`]): a process that is being started holds, for a moment, all descriptors of its parent.
//! A test that needs another process starts this program again, for one test that is ignored otherwise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod aio;
mod bounded;
mod crash;
mod fork;
mod memory;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The arguments of a started process: the URL of the pool, and the process's part.
const URL: &str = "JUNCTURA_TEST_URL";
const PART: &str = "JUNCTURA_TEST_PART";

/// Holds back the other tests of this program until it is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This program again, which runs only this ignored test.
fn itself<T: Fn()>(_test: T, url: &str, part: &str) -> Command {
    let (_program, path) = std::any::type_name::<T>().split_once("::").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([path, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(URL, url)
        .env(PART, part);
    command
}

/// The URL and the part of a started process; `None` if no test has started this process.
fn told() -> Option<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok();
    Some((variable(URL)?, variable(PART)?))
}
