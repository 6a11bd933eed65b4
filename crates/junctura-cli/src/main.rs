//! The `junctura` command: a pool from the shell.
//!
//! Each subcommand is a module of its own: its arguments, with their help, and a `run` that does it. Results go to standard
//! output, everything else to standard error; with `--json` the output is for programs. The exit status says what happened
//! ([`exit`]).

mod attributes;
mod bundle;
mod exit;
mod get;
mod group;
mod hammer;
mod interrupt;
mod json;
mod ls;
mod output;
mod put;
mod require;
mod schema;
mod serve;
mod size;
mod stat;
mod stop;
mod today;
mod url;
mod wanted;
mod watch;
mod withdraw;

use std::io::IsTerminal;

use clap::{Parser, Subcommand};

/// Hand scientific data over by meaning.
#[derive(Parser)]
#[command(name = "junctura", version, about, long_about = None, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Put(put::Arguments),
    Get(get::Arguments),
    Ls(ls::Arguments),
    Watch(watch::Arguments),
    Wanted(wanted::Arguments),
    Bundle(bundle::Arguments),
    Require(require::RequireArguments),
    Retract(require::RetractArguments),
    Group(group::Arguments),
    Withdraw(withdraw::WithdrawArguments),
    Retire(withdraw::RetireArguments),
    Stat(stat::Arguments),
    Schema(schema::Arguments),
    Serve(serve::Arguments),
    Stop(stop::Arguments),
    Hammer(hammer::Arguments),
    #[command(hide = true)]
    HammerWorker(hammer::WorkerArguments),
}

fn main() -> std::process::ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("JUNCTURA_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let outcome = match Arguments::parse().command {
        Command::Put(arguments) => put::run(&arguments),
        Command::Get(arguments) => get::run(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Wanted(arguments) => wanted::run(&arguments),
        Command::Bundle(arguments) => bundle::run(&arguments),
        Command::Require(arguments) => require::require(&arguments),
        Command::Retract(arguments) => require::retract(&arguments),
        Command::Group(arguments) => group::run(&arguments),
        Command::Withdraw(arguments) => withdraw::withdraw(&arguments),
        Command::Retire(arguments) => withdraw::retire(&arguments),
        Command::Stat(arguments) => stat::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Stop(arguments) => stop::run(&arguments),
        Command::Hammer(arguments) => hammer::run(&arguments),
        Command::HammerWorker(arguments) => hammer::work(&arguments),
    };
    exit::status(output::quietly(outcome))
}
