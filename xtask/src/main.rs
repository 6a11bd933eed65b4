//! Checks that keep the house in order, run as `cargo xtask tidy` (by `make lint`, too) and `cargo xtask features`.
//!
//! A rule that only a reader could enforce is soon broken. What the architecture promises (arrows between crates point
//! down, pure crates are pure, every decision is listed) is therefore read from the tree itself. Each rule is a module
//! with one function: it takes the tree and answers with what is wrong, a line each, or nothing.

use std::process::ExitCode;

mod features;
mod language;
mod measures;
mod tidy;
mod tree;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, [])) if command == "tidy" => tidy::run(),
        Some((command, [])) if command == "measures" => measures::run(),
        Some((command, [])) if command == "language" => language::run(),
        Some((command, options)) if command == "features" => features::run(options),
        _ => {
            eprintln!("usage: cargo xtask tidy | measures | language | features [--profile NAME] [--trees]");
            ExitCode::from(2)
        }
    }
}
