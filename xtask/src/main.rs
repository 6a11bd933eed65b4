//! Checks that keep the house in order, run as `cargo xtask tidy` and by `make lint`.
//!
//! A rule that only a reader could enforce is soon broken. What the architecture promises (arrows between crates point
//! down, pure crates are pure, every decision is listed) is therefore read from the tree itself. Each rule is a module
//! with one function: it takes the tree and answers with what is wrong, a line each, or nothing.

use std::process::ExitCode;

mod tidy;
mod tree;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["tidy"] {
        tidy::run()
    } else {
        eprintln!("usage: cargo xtask tidy");
        ExitCode::from(2)
    }
}
