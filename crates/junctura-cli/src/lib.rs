//! The `junctura` command, as a library.
//!
//! Each subcommand is a module: its arguments, with their help, and a `run`. Results are written to standard output, everything
//! else to standard error; with `--json` the output is for programs. The exit status reports the outcome.
//!
//! The program `junctura` calls only [`log`] and [`run`]. Other programs can be the same command: the Python package is one.

#[macro_use]
extern crate junctura_terminal;

mod absent;
mod admin;
mod attributes;
mod config;
mod exit;
mod json;
mod mesh;
mod metrics;
mod model;
mod pool;
mod python_program;
mod run;
mod store;
mod timeline;
mod today;
mod top;
mod url;
mod usage;
mod weights;
mod with;

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use junctura_terminal::program::ProgramWords;
pub use pool::explain::own::{FullMemory, full_memory, waits_of_offers, waits_of_withdrawals};
pub use pool::put::{FileCounts, FileOptions, each_message};
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
    Pool(pool::PoolCommandArguments),
    Store(store::StoreCommandArguments),
    Top(Box<top::TopArguments>),
    Metrics(metrics::MetricsArguments),
    Explain(pool::explain::ExplainArguments),
    Run(run::RunArguments),
    With(with::WithArguments),
    Timeline(timeline::TimelineArguments),
    Mesh(mesh::MeshCommandArguments),
    View(mesh::ViewArguments),
    Schema(model::schema::SchemaArguments),
    Layout(model::layout::LayoutArguments),
    Weights(weights::WeightsArguments),
    Config(config::ConfigArguments),
    Doctor(admin::doctor::DoctorArguments),
    Token(admin::token::TokenArguments),
    Cert(admin::cert::CertArguments),
    Load(junctura_load::LoadCommandArguments),
    Completions(admin::completions::CompletionsArguments),
    Man(admin::manual::ManualArguments),
}

/// The commands in the order of `junctura --help`, by task.
const TASKS: [(&str, &[&str]); 6] = [
    ("Objects", &["put", "get", "ls", "watch", "wait-for", "cp"]),
    ("Pools and stores", &["pool", "store", "top", "explain", "metrics"]),
    ("Workflows and products", &["run", "with", "timeline"]),
    ("Meshes", &["mesh", "view"]),
    ("Schemas and arrays", &["schema", "layout", "weights"]),
    (
        "This machine",
        &["doctor", "load", "token", "cert", "config", "completions", "man"],
    ),
];

/// Sends reports of the program to standard error: warnings, or the level of `JUNCTURA_LOG`. An existing logger of this
/// process stays as it is.
pub fn log() {
    // Commands report mistakes of users themselves.
    let default = "warn,junctura::selector=off,junctura::open=off";
    let filter = tracing_subscriber::EnvFilter::try_from_env("JUNCTURA_LOG").unwrap_or_else(|_| default.into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(junctura_terminal::output::is_styled(std::io::stderr().is_terminal()))
        .with_writer(|| junctura_terminal::visible::VisibleWriter(std::io::stderr()))
        .try_init();
}

/// Runs a command line and returns the exit status. The first argument is the name of the program.
///
/// Prints and blocks as the command does. Never ends the process, except at a second Ctrl-C if the command did not
/// end after the first one. After the first call, SIGINT no longer ends this process during commands that wait: a
/// process that handles SIGINT itself (Python) removes its handler before. `program` starts this command again,
/// for the processes of `junctura load`.
#[must_use]
pub fn run<T: Into<OsString> + Clone>(program: &ProgramWords, arguments: impl IntoIterator<Item = T>) -> u8 {
    let parsed = command().try_get_matches_from(arguments);
    let command = match parsed.and_then(|matches| CommandArguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments.command,
        Err(told) => {
            usage::usage(&told);
            return told.exit_code() as u8;
        }
    };
    let mut status = 0;
    let outcome = perform(command, program).map(|of_program| status = of_program);
    match junctura_terminal::output::quietly(outcome) {
        Ok(()) => status,
        failed => exit::status(failed),
    }
}

/// Returns the whole command line, with the exit statuses in the help of every part.
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
    let whole = CommandArguments::command().mut_subcommands(with_statuses);
    let template = template(&whole);
    whole.help_template(template)
}

/// Returns the help template of the whole command: subcommands are listed by task.
fn template(command: &clap::Command) -> String {
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(clap::Command::get_about);
        format!("  {name:<12}{}\n", about.map_or(String::new(), ToString::to_string))
    };
    let tasks = TASKS.map(|(task, names)| format!("\n{task}:\n{}", names.iter().map(line).collect::<String>()));
    let head = "{about-section}\n{usage-heading} {usage}\n";
    format!("{head}{}\nOptions:\n{{options}}{{after-help}}", tasks.concat())
}

/// Returns the command line without hidden parts, for completions and manual pages.
fn shown() -> clap::Command {
    fn without_hidden(all: &clap::Command, bare: clap::Command) -> clap::Command {
        let parts = all.get_subcommands().filter(|part| !part.is_hide_set());
        bare.subcommands(parts.map(|part| {
            if part.get_subcommands().all(|part| !part.is_hide_set()) {
                return part.clone();
            }
            let bare = clap::Command::new(part.get_name().to_owned())
                .about(part.get_about().cloned().unwrap_or_default())
                .long_about(part.get_long_about().cloned().unwrap_or_default())
                .after_help(part.get_after_help().cloned().unwrap_or_default())
                .subcommand_required(true);
            without_hidden(part, bare)
        }))
    }
    let all = command();
    let bare = clap::Command::new("junctura")
        .about(all.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(exit::HELP)
        .subcommand_required(true);
    without_hidden(&all, bare)
}

/// Performs a command and returns its exit status where it succeeds.
fn perform(command: TopCommand, program: &ProgramWords) -> junctura::Result<u8> {
    let done = match command {
        TopCommand::Put(arguments) => pool::put::run(&arguments),
        TopCommand::Get(arguments) => pool::get::run(&arguments),
        TopCommand::Ls(arguments) => pool::ls::run(&arguments),
        TopCommand::Watch(arguments) => pool::watch::run(&arguments),
        TopCommand::WaitFor(arguments) => pool::wait_for::run(&arguments),
        TopCommand::Cp(arguments) => pool::cp::run(&arguments),
        TopCommand::Pool(arguments) => pool::run(&arguments),
        TopCommand::Store(arguments) => store::run(&arguments, program),
        TopCommand::Top(arguments) => top::run(&arguments, program),
        TopCommand::Metrics(arguments) => metrics::run(&arguments),
        TopCommand::Explain(arguments) => pool::explain::run(&arguments),
        TopCommand::Run(arguments) => run::run(&arguments, program),
        TopCommand::With(arguments) => return with::run(&arguments, program),
        TopCommand::Timeline(arguments) => timeline::run(&arguments, program),
        TopCommand::Mesh(arguments) => mesh::run(&arguments, program),
        TopCommand::View(arguments) => mesh::view(&arguments, program),
        TopCommand::Schema(arguments) => model::schema::run(&arguments),
        TopCommand::Layout(arguments) => model::layout::run(&arguments),
        TopCommand::Weights(arguments) => weights::run(&arguments, program),
        TopCommand::Config(arguments) => config::run(&arguments, program),
        TopCommand::Doctor(arguments) => admin::doctor::run(&arguments),
        TopCommand::Token(arguments) => admin::token::run(&arguments),
        TopCommand::Cert(arguments) => admin::cert::run(&arguments),
        TopCommand::Load(arguments) => junctura_load::run(&arguments, program),
        TopCommand::Completions(arguments) => admin::completions::run(&arguments),
        TopCommand::Man(arguments) => admin::manual::run(&arguments),
    };
    done.map(|()| 0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn each(command: &clap::Command, look: &mut dyn FnMut(&clap::Command)) {
        for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
            look(part);
            each(part, look);
        }
    }

    #[test]
    fn every_command_belongs_to_a_task() {
        let whole = command();
        let mut shown: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> = TASKS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(shown, listed);
    }

    #[test]
    fn every_command_makes_sense_to_the_parser() {
        command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_with_an_example_and_its_statuses() {
        for part in command().get_subcommands() {
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
    fn commands_that_messages_propose_are_complete() {
        let mut proposed = Vec::new();
        each_source(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")),
            &mut |file, text| {
                proposed.extend(commands_of(&text).into_iter().map(|command| (file.to_owned(), command)));
            },
        );
        assert!(proposed.len() > 30, "{proposed:?}");
        let refused: Vec<_> = proposed
            .iter()
            .filter_map(|(file, line)| refusal(line).map(|why| format!("{file}: {line}: {why}")))
            .collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }

    /// Calls `look` with all sources below a folder, without their comments.
    fn each_source(folder: &Path, look: &mut dyn FnMut(&str, String)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !["tests", "benches", "examples", "target"].contains(&name) {
                    each_source(&path, look);
                }
            } else if path.extension().is_some_and(|kind| kind == "rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                look(name, lines.map(|line| line.to_owned() + "\n").collect());
            }
        }
    }

    /// Returns the commands between backticks.
    fn commands_of(code: &str) -> Vec<String> {
        let mut joined = String::new();
        for line in code.lines() {
            match line.strip_suffix('\\') {
                Some(begun) => joined.push_str(begun.trim_start()),
                None => joined.extend([line.trim_start(), "\n"]),
            }
        }
        let parts = joined.split("`junctura ").skip(1);
        let ended = parts.filter_map(|part| part.split_once('`').map(|(command, _)| command.to_owned()));
        // Some are composed of parts.
        ended
            .filter(|command| !command.contains('\n') && !command.starts_with('{'))
            .collect()
    }

    /// Why a command is no command line: with values in place of `{…}` and of names in capital letters.
    fn refusal(line: &str) -> Option<String> {
        let mut words = vec!["junctura".to_owned()];
        let line = line.split(" > ").next().unwrap_or_default();
        for word in line.split_whitespace() {
            let value = match word {
                "SELECTOR" => "name=a",
                "SIZE" => "1MiB",
                "TIME" => "1s",
                _ if word.contains('{') => "x",
                _ => word,
            };
            words.push(value.to_owned());
        }
        let error = CommandArguments::command().try_get_matches_from(words).err()?;
        let of_value = [
            clap::error::ErrorKind::InvalidValue,
            clap::error::ErrorKind::ValueValidation,
        ];
        (!of_value.contains(&error.kind())).then(|| error.to_string())
    }

    #[test]
    fn every_command_that_talks_to_a_pool_can_be_given_a_name() {
        each(&command(), &mut |part| {
            let has = |name: &str| part.get_arguments().any(|argument| argument.get_long() == Some(name));
            let is_client = has("pool") && !["pool", "doctor", "serve"].contains(&part.get_name());
            assert!(!is_client || has("as"), "{}: no name", part.get_name());
        });
    }
}
