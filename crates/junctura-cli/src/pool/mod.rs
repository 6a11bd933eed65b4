//! The commands about a pool: offers and reads of objects, requirements, groups, its server.

pub(crate) mod beside;
pub(crate) mod bundle;
pub(crate) mod cp;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod group;
pub(crate) mod health;
pub(crate) mod ls;
pub(crate) mod patience;
pub(crate) mod put;
pub(crate) mod require;
pub(crate) mod serve;
pub(crate) mod stat;
pub(crate) mod stop;
pub(crate) mod wait_for;
pub(crate) mod wanted;
pub(crate) mod watch;
pub(crate) mod withdraw;

use clap::{Args, Subcommand};
use junctura::Result;

const EXAMPLES: &str = "Examples:
  junctura pool serve --pool unix:model --budget 16GiB
  junctura pool stat --pool unix:model
  junctura pool require 'param=2t,step=0/to/240/by/6' --name plots
  junctura pool stop --pool unix:model";

/// Serve pools, look at them, and manage what they keep: requirements, groups, bundles
///
/// `put`, `get`, `ls`, `watch`, `wait-for` and `cp` transfer and list objects.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PoolCommandArguments {
    #[command(subcommand)]
    command: PoolCommand,
}

#[derive(Subcommand, Debug)]
enum PoolCommand {
    Serve(Box<serve::ServeArguments>),
    Stop(stop::StopArguments),
    Stat(stat::StatArguments),
    Health(health::HealthArguments),
    Require(require::RequireArguments),
    Retract(require::RetractArguments),
    #[command(visible_alias = "groups")]
    Group(group::GroupArguments),
    Bundle(bundle::BundleArguments),
    Wanted(wanted::WantedArguments),
    Withdraw(withdraw::WithdrawArguments),
    WithdrawAll(withdraw::WithdrawAllArguments),
}

/// Runs a command about a pool.
pub(crate) fn run(arguments: &PoolCommandArguments) -> Result<()> {
    match &arguments.command {
        PoolCommand::Serve(arguments) => serve::run(arguments),
        PoolCommand::Stop(arguments) => stop::run(arguments),
        PoolCommand::Stat(arguments) => stat::run(arguments),
        PoolCommand::Health(arguments) => health::run(arguments),
        PoolCommand::Require(arguments) => require::require(arguments),
        PoolCommand::Retract(arguments) => require::retract(arguments),
        PoolCommand::Group(arguments) => group::run(arguments),
        PoolCommand::Bundle(arguments) => bundle::run(arguments),
        PoolCommand::Wanted(arguments) => wanted::run(arguments),
        PoolCommand::Withdraw(arguments) => withdraw::withdraw(arguments),
        PoolCommand::WithdrawAll(arguments) => withdraw::withdraw_all(arguments),
    }
}
