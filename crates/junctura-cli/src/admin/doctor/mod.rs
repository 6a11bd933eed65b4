//! `junctura doctor`: whether this machine, as this process finds it, is in order for a pool.
//!
//! Each check is a small function of the [`Machine`] that says what it found. What is not in order comes with what follows
//! from it and what can be done. Nothing is changed, but for a socket and some memory that are gone when it ends.

mod files;
mod kernel;
mod limits;
mod memory;
mod sockets;

use std::path::PathBuf;

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_transport::Address;
use serde_json::json;

use crate::terminal::interrupt::survive_file_limit;
use crate::terminal::output::{Out, Style};

const EXAMPLES: &str = "Examples:
  junctura doctor
  junctura doctor --json | jq 'select(.level != \"ok\")'
  srun junctura doctor                         what a job finds is not what a login node has
The exit status is 0 if nothing has failed, and 1 otherwise; a warning is no failure.";

/// Look for what is wrong with this machine
///
/// Memory and limits, kernel, sockets and what servers have left behind, as this user and this process find them. Each finding
/// says what follows from it and what can be done.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArguments {
    #[arg(
        help = "The pool that is meant: unix:NAME, unix:/path.sock or unix:@abstract",
        long,
        env = "JUNCTURA_POOL",
        default_value = "unix:default",
        value_name = "URL"
    )]
    pool: String,
    /// Show only what is not in order
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print a JSON line for each finding, then a summary
    #[arg(long)]
    json: bool,
}

/// Where checks look.
#[derive(Clone, Debug)]
struct Machine {
    proc: PathBuf,
    cgroups: PathBuf,
    pool: String,
}

impl Machine {
    fn this(pool: &str) -> Machine {
        Machine {
            proc: "/proc".into(),
            cgroups: "/sys/fs/cgroup".into(),
            pool: pool.to_owned(),
        }
    }
}

/// The memory that the control group of this process may have, where it is limited.
pub(crate) fn group_limit_bytes() -> Option<u64> {
    memory::limit_of(&Machine::this(""))
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    /// It works, but not as well as it could, or not for long
    Warn,
    /// It does not work
    Fail,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }

    fn style(self) -> Style {
        match self {
            Level::Ok => Style::Good,
            Level::Warn => Style::Doubtful,
            Level::Fail => Style::Bad,
        }
    }
}

/// What a check says.
#[derive(Clone, Debug)]
struct Finding {
    check: &'static str,
    level: Level,
    found: String,
    /// What follows from it, and what can be done; empty where all is well.
    consequence: String,
    remedy: String,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            check,
            level: Level::Ok,
            found: found.into(),
            consequence: String::new(),
            remedy: String::new(),
        }
    }

    fn warn(check: &'static str, found: impl Into<String>, consequence: &str, remedy: &str) -> Finding {
        Finding {
            level: Level::Warn,
            consequence: consequence.to_owned(),
            remedy: remedy.to_owned(),
            ..Finding::ok(check, found)
        }
    }

    fn fail(check: &'static str, found: impl Into<String>, consequence: &str, remedy: &str) -> Finding {
        Finding {
            level: Level::Fail,
            ..Finding::warn(check, found, consequence, remedy)
        }
    }
}

type Check = fn(&Machine) -> Vec<Finding>;

const CHECKS: [Check; 16] = [
    kernel::version,
    kernel::clock,
    kernel::wakeups,
    files::proc,
    memory::available,
    memory::control_group,
    memory::sealing,
    limits::descriptors,
    limits::file_size,
    limits::address_space,
    limits::locked,
    sockets::address,
    sockets::directory,
    sockets::left_behind,
    sockets::loopback,
    sockets::elsewhere,
];

/// Looks.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<()> {
    survive_file_limit()?;
    let machine = Machine::this(&arguments.pool);
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&machine)).collect();
    findings.push(sockets::hand_over());
    let mut out = Out::new();
    for finding in &findings {
        if arguments.json {
            out.json(&json!({
                "check": finding.check, "level": finding.level.name(), "found": finding.found,
                "consequence": finding.consequence, "remedy": finding.remedy,
            }))?;
        } else if !arguments.quiet || finding.level > Level::Ok {
            let level = out.styled(finding.level.style(), &format!("{:<4}", finding.level.name()));
            writeln!(out, "{level}  {:<20} {}", finding.check, finding.found)?;
            for (what, text) in [("so", &finding.consequence), ("do", &finding.remedy)] {
                if !text.is_empty() {
                    writeln!(out, "        {what}: {text}")?;
                }
            }
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (failed, warned) = (count(Level::Fail), count(Level::Warn));
    if arguments.json {
        out.json(&json!({"checks": findings.len(), "failed": failed, "warned": warned}))?;
    } else if !arguments.quiet {
        writeln!(
            out,
            "{} findings: {failed} failed, {warned} to think about",
            findings.len()
        )?;
    }
    out.flush()?;
    match failed {
        0 => Ok(()),
        _ => Err(Error::new(
            Code::Unsupported,
            "this machine",
            format!("{failed} checks failed"),
        )),
    }
}

/// The address that is meant, if it is one.
fn address(machine: &Machine) -> Result<Address> {
    machine.pool.parse()
}

#[cfg(test)]
mod testing {
    use super::{Finding, Level, Machine};

    /// A machine whose files are made up.
    pub(super) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine {
            proc: folder.path().join("proc"),
            cgroups: folder.path().join("cgroup"),
            pool: format!("unix:{}", folder.path().join("run/pool.sock").display()),
        };
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, machine)
    }

    /// What they found, of which every one that is not in order says why it matters and what to do.
    pub(super) fn levels(findings: &[Finding]) -> Vec<Level> {
        for finding in findings {
            let is_told = !finding.consequence.is_empty() && !finding.remedy.is_empty();
            assert!(finding.level == Level::Ok || is_told, "{finding:?}");
        }
        findings.iter().map(|finding| finding.level).collect()
    }
}
