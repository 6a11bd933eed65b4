//! The program `junctura`.

use std::process::ExitCode;

use junctura_cli::ProgramWords;

fn main() -> ExitCode {
    junctura_cli::log();
    ExitCode::from(junctura_cli::run(&ProgramWords::this(), std::env::args_os()))
}
