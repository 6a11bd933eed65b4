//! `junctura pool group` lists, shows and removes consumer groups.

use clap::{Args, Subcommand};
use junctura::{Code, Error, Pool, Result};
use junctura_model::command::shell_word;
use junctura_model::nearest;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use serde_json::{Value, json};

use crate::absent::open_served;
use crate::pool::stat::{ago, array, bytes, number, printable};
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool require param=t/u --name products --group     create one
  junctura get --all --group products -o fields/         receive a share of its objects
  junctura pool groups                                        list them
  junctura pool group show products --json | jq .group.members
  junctura pool group remove products";

/// List, show or remove consumer groups
///
/// The members of a group share the matching objects: each object is delivered to one member at a time, and is done when that
/// member releases it. A group is a named requirement with several readers: `junctura pool require --group` creates one, and `junctura pool retract`
/// ends one as `remove` does. Without a subcommand, lists the groups.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct GroupArguments {
    #[command(subcommand)]
    what: Option<GroupCommand>,
    #[command(flatten)]
    list: ListArguments,
}

#[derive(Subcommand, Debug)]
enum GroupCommand {
    List(ListArguments),
    Show(ShowArguments),
    Remove(RemoveArguments),
}

/// List the groups, the objects that they are owed, and their members
#[derive(Args, Debug)]
struct ListArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Print a JSON line for each group
    #[arg(long)]
    json: bool,
}

/// Show one group and its members
#[derive(Args, Debug)]
struct ShowArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// The name
    #[arg(value_name = "NAME")]
    name: String,
    /// Print the server's data about the group, as JSON
    #[arg(long)]
    json: bool,
}

/// Remove groups by name: objects that only they retained may be removed, and their members get an error
#[derive(Args, Debug)]
struct RemoveArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// The names
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print a JSON line for each group
    #[arg(long)]
    json: bool,
}

/// Runs a command about groups.
pub(crate) fn run(arguments: &GroupArguments) -> Result<()> {
    match &arguments.what {
        None => list(&arguments.list),
        Some(GroupCommand::List(arguments)) => list(arguments),
        Some(GroupCommand::Show(arguments)) => show(arguments),
        Some(GroupCommand::Remove(arguments)) => remove(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<()> {
    let groups = groups(&look(&arguments.pool)?)?;
    let mut out = StandardOutput::new();
    if arguments.json {
        groups.iter().try_for_each(|group| out.json(group))?;
        return out.flush();
    }
    if groups.is_empty() {
        writeln!(out, "no groups")?;
        return out.flush();
    }
    out.heading(&format!(
        "{:<24} {:>8} {:>8} {:>9} {:>7} {:>11} {:>8} {:>8}  selector",
        "group", "owed", "waiting", "in flight", "members", "bytes", "oldest", "released"
    ))?;
    for one in &groups {
        writeln!(
            out,
            "{:<24} {:>8} {:>8} {:>9} {:>7} {:>11} {:>8} {:>8}  {}",
            printable(&one["name"]),
            number(&one["owed"]),
            number(&one["group"]["waiting"]),
            number(&one["in_flight"]),
            number(&one["group"]["member_count"]),
            bytes(&one["owed_bytes"]),
            ago(&one["oldest_owed_age_s"]),
            ago(&one["last_release_age_s"]),
            selector(one)
        )?;
    }
    out.flush()
}

fn show(arguments: &ShowArguments) -> Result<()> {
    let group = find(&look(&arguments.pool)?, &arguments.name)?;
    let mut out = StandardOutput::new();
    if arguments.json {
        out.json(&group)?;
        return out.flush();
    }
    let lines = [
        ("group", printable(&group["name"])),
        ("selector", selector(&group)),
        (
            "owed",
            format!("{}, {}", number(&group["owed"]), bytes(&group["owed_bytes"])),
        ),
        ("waiting", number(&group["group"]["waiting"]).to_string()),
        ("in flight", number(&group["in_flight"]).to_string()),
        ("oldest owed", format!("for {}", ago(&group["oldest_owed_age_s"]))),
        ("last release", ago(&group["last_release_age_s"])),
        ("lost", number(&group["lost"]).to_string()),
        ("time to live", ago(&group["time_to_live_s"])),
        ("lapses in", ago(&group["lapses_in_s"])),
    ];
    for (what, value) in lines {
        writeln!(out, "{what:<13} {value}")?;
    }
    writeln!(out)?;
    out.heading(&format!(
        "{:>7}  {:<24} {:>8}  {:<20} {:>9} {:>6}",
        "client", "member", "pid", "host", "in flight", "window"
    ))?;
    let members = array(&group["group"]["members"]);
    for member in members {
        writeln!(
            out,
            "{:>7}  {:<24} {:>8}  {:<20} {:>9} {:>6}",
            number(&member["client"]),
            printable(&member["name"]),
            number(&member["pid"]),
            printable(&member["host"]),
            number(&member["in_flight"]),
            number(&member["window"])
        )?;
    }
    let (shown, all) = (members.len() as u64, number(&group["group"]["member_count"]));
    if all > shown {
        writeln!(out, "and {} more", all - shown)?;
    }
    out.flush()
}

fn remove(arguments: &RemoveArguments) -> Result<()> {
    let pool = arguments
        .pool
        .connect_to_read(&InterruptFlag::install()?, "junctura pool group remove")?;
    let mut out = StandardOutput::new();
    for name in &arguments.names {
        find(&pool, name)?;
        let owed = pool.retract(name)?;
        if arguments.json {
            out.json(&json!({"name": name, "owed": owed}))?;
        } else {
            let s = if owed == 1 { "" } else { "s" };
            writeln!(out, "{name} removed; it was still owed {owed} object{s}")?;
        }
    }
    out.flush()
}

fn look(pool: &PoolArguments) -> Result<Pool> {
    let builder = pool.reader("junctura pool group").visitor(true);
    open_served(&pool.pool, || InterruptFlag::install()?.watch(builder).open())
}

fn groups(pool: &Pool) -> Result<Vec<Value>> {
    let mut stat: Value =
        serde_json::from_str(&pool.stat()?).map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
    let Value::Array(mut named) = stat["named_requirements"].take() else {
        return Ok(Vec::new());
    };
    named.retain(|one| one["group"].is_object());
    Ok(named)
}

fn find(pool: &Pool, name: &str) -> Result<Value> {
    let groups = groups(pool)?;
    if let Some(found) = groups.iter().find(|one| one["name"] == name) {
        return Ok(found.clone());
    }
    let near = nearest(groups.iter().filter_map(|one| one["name"].as_str()), name);
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let cause = format!(
        "no group has this name; `junctura pool groups` lists them, and `junctura pool require SELECTOR --name {} --group` \
         creates it{near}",
        shell_word(name)
    );
    Err(Error::new(Code::NotFound, format!("group {name}"), cause))
}

fn selector(group: &Value) -> String {
    let text = printable(&group["selector"]);
    let text = if text.is_empty() { "*".to_owned() } else { text };
    if group["versions"] == "newest" {
        format!("{text} (newest)")
    } else {
        text
    }
}
