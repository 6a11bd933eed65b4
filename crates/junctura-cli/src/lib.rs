//! The `junctura` command, as a library: a pool from the shell.
//!
//! Each subcommand is a module of its own: its arguments, with their help, and a `run` that does it. Results go to standard
//! output, everything else to standard error; with `--json` the output is for programs. The exit status says what happened.
//!
//! The program `junctura` is [`log`] and [`run`] and nothing else. Others can be the same command: the Python package is one.

#[macro_use]
mod terminal;

mod absent;
mod admin;
mod attributes;
mod config;
mod exit;
mod hammer;
mod json;
mod model;
mod pool;
mod program;
mod run;
mod size;
mod store;
mod timeline;
mod today;
mod url;
mod weights;

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use pool::put::{FileCounts, FileOptions, each_message};
pub use program::ProgramWords;
pub use store::query::stat::document as stats_document;

/// Hand scientific data over by meaning.
#[derive(Parser)]
#[command(name = "junctura", version, long_version = admin::version::long(), after_help = exit::HELP)]
struct CommandArguments {
    #[command(subcommand)]
    command: TopCommand,
}

#[derive(Subcommand)]
enum TopCommand {
    Put(pool::put::PutArguments),
    Get(pool::get::GetArguments),
    Ls(pool::ls::LsArguments),
    Watch(pool::watch::WatchArguments),
    WaitFor(pool::wait_for::WaitForArguments),
    Cp(pool::cp::CpArguments),
    Wanted(pool::wanted::WantedArguments),
    Bundle(pool::bundle::BundleArguments),
    Require(pool::require::RequireArguments),
    Retract(pool::require::RetractArguments),
    #[command(visible_alias = "groups")]
    Group(pool::group::GroupArguments),
    Withdraw(pool::withdraw::WithdrawArguments),
    WithdrawAll(pool::withdraw::WithdrawAllArguments),
    Create(store::create::CreateArguments),
    Archive(store::archive::ArchiveArguments),
    Archiver(store::archiver::ArchiverArguments),
    Import(store::import::ImportArguments),
    Retrieve(store::query::retrieve::RetrieveArguments),
    Axes(store::query::axes::AxesArguments),
    Inspect(store::query::inspect::InspectArguments),
    Purge(store::maintenance::remove::PurgeArguments),
    Wipe(store::maintenance::remove::WipeArguments),
    Tier(store::maintenance::tier::TierArguments),
    Move(store::maintenance::tier::MoveArguments),
    Compare(store::query::compare::CompareArguments),
    Check(store::maintenance::check::CheckArguments),
    Checkpoint(store::maintenance::compact::CheckpointArguments),
    Compact(store::maintenance::compact::CompactArguments),
    Stat(pool::stat::StatArguments),
    Run(run::RunArguments),
    Timeline(timeline::TimelineArguments),
    Schema(model::schema::SchemaArguments),
    Layout(model::layout::LayoutArguments),
    Weights(weights::WeightsArguments),
    Config(config::ConfigArguments),
    Serve(pool::serve::ServeArguments),
    Stop(pool::stop::StopArguments),
    Doctor(admin::doctor::DoctorArguments),
    Bench(admin::bench::BenchArguments),
    Token(admin::token::TokenArguments),
    Cert(admin::cert::CertArguments),
    Hammer(hammer::HammerArguments),
    Completions(admin::completions::CompletionsArguments),
    Man(admin::manual::ManualArguments),
    #[command(hide = true)]
    HammerWorker(hammer::HammerWorkerArguments),
    #[command(hide = true)]
    BenchWorker(admin::bench::BenchWorkerArguments),
}

/// Sends what the program has to say of itself to standard error: warnings, or what `JUNCTURA_LOG` asks for. Where something
/// else has set that up for this process, it stays as it is.
pub fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("JUNCTURA_LOG").unwrap_or_else(|_| "warn".into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(terminal::output::is_styled(std::io::stderr().is_terminal()))
        .with_writer(|| terminal::visible::VisibleWriter(std::io::stderr()))
        .try_init();
}

/// Does what a command line says, and returns the exit status. The first argument is the name of the program.
///
/// It prints, waits as long as the command does, and never ends the process, but for a second Ctrl-C in a command that has not
/// yet ended after the first. From its first call on, SIGINT no longer ends this process by itself in commands that wait: a
/// process that has its own idea of SIGINT (Python) gives that up before. `program` is how this command is started once more,
/// for the processes of `junctura hammer`.
#[must_use]
pub fn run<T: Into<OsString> + Clone>(program: &ProgramWords, arguments: impl IntoIterator<Item = T>) -> u8 {
    let parsed = command().try_get_matches_from(arguments);
    let command = match parsed.and_then(|matches| CommandArguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments.command,
        Err(told) => {
            terminal::output::usage(&told);
            return told.exit_code() as u8;
        }
    };
    exit::status(terminal::output::quietly(perform(command, program)))
}

/// The whole command line, with what every part of it says about exit statuses.
fn command() -> clap::Command {
    fn with_statuses(command: clap::Command) -> clap::Command {
        if command.has_subcommands() {
            return command.mut_subcommands(with_statuses);
        }
        let help = command
            .get_after_help()
            .map_or(String::new(), |help| format!("{help}\n\n"));
        command.after_help(format!("{help}{}", exit::STATUSES))
    }
    CommandArguments::command().mut_subcommands(with_statuses)
}

/// The same, without what is hidden: for what a shell or a manual shows.
fn shown() -> clap::Command {
    let all = command();
    let parts = all.get_subcommands().filter(|part| !part.is_hide_set()).cloned();
    clap::Command::new("junctura")
        .about(all.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(exit::HELP)
        .subcommand_required(true)
        .subcommands(parts)
}

fn perform(command: TopCommand, program: &ProgramWords) -> junctura::Result<()> {
    match command {
        TopCommand::Put(arguments) => pool::put::run(&arguments),
        TopCommand::Get(arguments) => pool::get::run(&arguments),
        TopCommand::Ls(arguments) => pool::ls::run(&arguments),
        TopCommand::Watch(arguments) => pool::watch::run(&arguments),
        TopCommand::WaitFor(arguments) => pool::wait_for::run(&arguments),
        TopCommand::Cp(arguments) => pool::cp::run(&arguments),
        TopCommand::Wanted(arguments) => pool::wanted::run(&arguments),
        TopCommand::Bundle(arguments) => pool::bundle::run(&arguments),
        TopCommand::Require(arguments) => pool::require::require(&arguments),
        TopCommand::Retract(arguments) => pool::require::retract(&arguments),
        TopCommand::Group(arguments) => pool::group::run(&arguments),
        TopCommand::Withdraw(arguments) => pool::withdraw::withdraw(&arguments),
        TopCommand::WithdrawAll(arguments) => pool::withdraw::withdraw_all(&arguments),
        TopCommand::Create(arguments) => store::create::run(&arguments),
        TopCommand::Archive(arguments) => store::archive::run(&arguments),
        TopCommand::Archiver(arguments) => store::archiver::run(&arguments),
        TopCommand::Import(arguments) => store::import::run(&arguments, program),
        TopCommand::Retrieve(arguments) => store::query::retrieve::run(&arguments),
        TopCommand::Axes(arguments) => store::query::axes::run(&arguments),
        TopCommand::Inspect(arguments) => store::query::inspect::run(&arguments),
        TopCommand::Purge(arguments) => store::maintenance::remove::purge(&arguments),
        TopCommand::Wipe(arguments) => store::maintenance::remove::wipe(&arguments),
        TopCommand::Tier(arguments) => store::maintenance::tier::tier(&arguments),
        TopCommand::Move(arguments) => store::maintenance::tier::move_to(&arguments),
        TopCommand::Compare(arguments) => store::query::compare::run(&arguments, program),
        TopCommand::Check(arguments) => store::maintenance::check::run(&arguments),
        TopCommand::Checkpoint(arguments) => store::maintenance::compact::checkpoint(&arguments),
        TopCommand::Compact(arguments) => store::maintenance::compact::compact(&arguments),
        TopCommand::Stat(arguments) => pool::stat::run(&arguments),
        TopCommand::Run(arguments) => run::run(&arguments, program),
        TopCommand::Timeline(arguments) => timeline::run(&arguments, program),
        TopCommand::Schema(arguments) => model::schema::run(&arguments),
        TopCommand::Layout(arguments) => model::layout::run(&arguments),
        TopCommand::Weights(arguments) => weights::run(&arguments, program),
        TopCommand::Config(arguments) => config::run(&arguments, program),
        TopCommand::Serve(arguments) => pool::serve::run(&arguments),
        TopCommand::Stop(arguments) => pool::stop::run(&arguments),
        TopCommand::Doctor(arguments) => admin::doctor::run(&arguments),
        TopCommand::Bench(arguments) => admin::bench::run(&arguments, program),
        TopCommand::Completions(arguments) => admin::completions::run(&arguments),
        TopCommand::Man(arguments) => admin::manual::run(&arguments),
        TopCommand::BenchWorker(arguments) => admin::bench::work(&arguments),
        TopCommand::Token(arguments) => admin::token::run(&arguments),
        TopCommand::Cert(arguments) => admin::cert::run(&arguments),
        TopCommand::Hammer(arguments) => hammer::run(&arguments, program),
        TopCommand::HammerWorker(arguments) => hammer::work(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &clap::Command, look: &mut dyn FnMut(&clap::Command)) {
        for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
            look(part);
            each(part, look);
        }
    }

    #[test]
    fn every_command_makes_sense_to_the_parser() {
        command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_with_an_example_and_its_statuses() {
        for part in command().get_subcommands().filter(|part| !part.is_hide_set()) {
            let help = part.clone().render_long_help().to_string();
            assert!(help.contains("Example"), "{}: no example", part.get_name());
        }
        each(&command(), &mut |part| {
            assert!(part.get_about().is_some(), "{}: says nothing", part.get_name());
            let help = part.clone().render_long_help().to_string();
            let is_told = part.has_subcommands() || help.contains("Exit status: 0 done");
            assert!(is_told, "{}: no exit statuses", part.get_name());
        });
    }

    #[test]
    fn every_command_that_talks_to_a_pool_can_be_given_a_name() {
        each(&command(), &mut |part| {
            let has = |name: &str| part.get_arguments().any(|argument| argument.get_long() == Some(name));
            let own_names = ["hammer", "doctor"];
            let is_client = has("pool") && !own_names.contains(&part.get_name());
            assert!(!is_client || has("as"), "{}: no name", part.get_name());
        });
    }
}
