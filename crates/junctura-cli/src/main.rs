//! The program `junctura`.

use std::process::ExitCode;

use junctura_cli::Program;

fn main() -> ExitCode {
    junctura_cli::log();
    ExitCode::from(junctura_cli::run(&Program::this(), std::env::args_os()))
}
