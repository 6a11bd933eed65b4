//! `junctura doctor`: checks whether this machine, as this process finds it, is in order for a pool.
//!
//! Each check is a small function of the [`MachineView`] that returns its findings. A finding that is not in order has
//! its consequence and its remedy. Nothing is changed, except for a socket and some memory, which are removed at the
//! end.

mod files;
mod kernel;
mod limits;
mod memory;
mod secrets;
mod served;
mod sockets;

use std::path::PathBuf;

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_terminal::interrupt::survive_file_limit;
use junctura_terminal::output::{StandardOutput, WordStyle};
use junctura_transport::ServerAddress;
use serde_json::json;

const EXAMPLES: &str = "Examples:
  junctura doctor
  junctura doctor --pool unix:model              also the server of this pool
  junctura doctor --security ~/pool-security     also the secrets of a server
  junctura doctor --json | jq 'select(.level != \"ok\")'
  srun junctura doctor                         what a job finds is not what a login node has
The exit status is 0 if nothing has failed, and 1 otherwise; a warning is no failure.";

/// Look for problems of this machine, and of a pool
///
/// Memory and limits, kernel, sockets and remains of servers, as this user and this process find them. With --pool also the server
/// of a pool: whether it answers, its version and clock, limits that are near, its spill disk, and clients that are stuck. Each finding
/// has its consequence and its remedy.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArguments {
    #[arg(
        help = "Check the server of this pool, too: unix:NAME, unix:/path.sock, unix:@abstract or tcp://HOST:PORT",
        long,
        value_name = "URL"
    )]
    pool: Option<String>,
    /// The directory with the secrets of a server (`junctura pool serve --security`): check its files, too
    #[arg(long, value_name = "FOLDER")]
    security: Option<PathBuf>,
    /// Show only what is not in order
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print a JSON line for each finding, then a summary
    #[arg(long)]
    json: bool,
}

/// Where checks look.
#[derive(Clone, Debug)]
struct MachineView {
    proc: PathBuf,
    cgroups: PathBuf,
    pool: String,
    security: Option<PathBuf>,
}

impl MachineView {
    fn this(pool: &str) -> MachineView {
        MachineView {
            proc: "/proc".into(),
            cgroups: "/sys/fs/cgroup".into(),
            pool: pool.to_owned(),
            security: None,
        }
    }
}

/// The memory that the control group of this process may have, where it is limited.
pub(crate) fn group_limit_bytes() -> Option<u64> {
    memory::limit_of(&MachineView::this(""))
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FindingLevel {
    Ok,
    /// It works, but not as well as it could, or not for long
    Warn,
    /// It does not work
    Fail,
}

impl FindingLevel {
    fn name(self) -> &'static str {
        match self {
            FindingLevel::Ok => "ok",
            FindingLevel::Warn => "warn",
            FindingLevel::Fail => "fail",
        }
    }

    fn style(self) -> WordStyle {
        match self {
            FindingLevel::Ok => WordStyle::Good,
            FindingLevel::Warn => WordStyle::Doubtful,
            FindingLevel::Fail => WordStyle::Bad,
        }
    }
}

/// The finding of a check.
#[derive(Clone, Debug)]
struct DoctorFinding {
    check: &'static str,
    level: FindingLevel,
    found: String,
    /// The consequence, and the remedy; empty where all is well.
    consequence: String,
    remedy: String,
}

impl DoctorFinding {
    fn ok(check: &'static str, found: impl Into<String>) -> DoctorFinding {
        DoctorFinding {
            check,
            level: FindingLevel::Ok,
            found: found.into(),
            consequence: String::new(),
            remedy: String::new(),
        }
    }

    fn warn(check: &'static str, found: impl Into<String>, consequence: &str, remedy: &str) -> DoctorFinding {
        DoctorFinding {
            level: FindingLevel::Warn,
            consequence: consequence.to_owned(),
            remedy: remedy.to_owned(),
            ..DoctorFinding::ok(check, found)
        }
    }

    fn fail(check: &'static str, found: impl Into<String>, consequence: &str, remedy: &str) -> DoctorFinding {
        DoctorFinding {
            level: FindingLevel::Fail,
            ..DoctorFinding::warn(check, found, consequence, remedy)
        }
    }
}

type Check = fn(&MachineView) -> Vec<DoctorFinding>;

const CHECKS: [Check; 19] = [
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
    secrets::directory,
    secrets::certificate,
    secrets::tokens,
];

/// Looks.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<()> {
    survive_file_limit()?;
    let meant = std::env::var("JUNCTURA_POOL").ok().filter(|url| !url.is_empty());
    let meant = arguments.pool.clone().or(meant);
    let machine = MachineView {
        security: arguments.security.clone(),
        ..MachineView::this(meant.as_deref().unwrap_or("unix:default"))
    };
    let mut findings: Vec<DoctorFinding> = CHECKS.iter().flat_map(|check| check(&machine)).collect();
    findings.push(sockets::hand_over());
    findings.extend(arguments.pool.iter().flat_map(|url| served::findings(url)));
    let mut out = StandardOutput::new();
    for finding in &findings {
        if arguments.json {
            out.json(&json!({
                "check": finding.check, "level": finding.level.name(), "found": finding.found,
                "consequence": finding.consequence, "remedy": finding.remedy,
            }))?;
        } else if !arguments.quiet || finding.level > FindingLevel::Ok {
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
    let (failed, warned) = (count(FindingLevel::Fail), count(FindingLevel::Warn));
    if arguments.json {
        out.json(&json!({"checks": findings.len(), "failed": failed, "warned": warned}))?;
    } else if !arguments.quiet {
        writeln!(
            out,
            "{}: {failed} failed, {}",
            counted(findings.len(), "check"),
            counted(warned, "warning")
        )?;
    }
    out.flush()?;
    match failed {
        0 => Ok(()),
        _ => Err(Error::new(
            Code::Unsupported,
            "doctor",
            format!(
                "{} failed; each line that begins with `fail` has the remedy below it",
                counted(failed, "check")
            ),
        )),
    }
}

fn counted(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// The address that is meant, if it is one.
fn address(machine: &MachineView) -> Result<ServerAddress> {
    machine.pool.parse()
}

#[cfg(test)]
mod testing {
    use super::{DoctorFinding, FindingLevel, MachineView};

    /// A machine whose files are made up.
    pub(super) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, MachineView) {
        let folder = tempfile::tempdir().unwrap();
        let machine = MachineView {
            proc: folder.path().join("proc"),
            cgroups: folder.path().join("cgroup"),
            pool: format!("unix:{}", folder.path().join("run/pool.sock").display()),
            security: None,
        };
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, machine)
    }

    /// Returns the levels of findings; checks that each one that is not in order has a consequence and a remedy.
    pub(super) fn levels(findings: &[DoctorFinding]) -> Vec<FindingLevel> {
        for finding in findings {
            let is_told = !finding.consequence.is_empty() && !finding.remedy.is_empty();
            assert!(finding.level == FindingLevel::Ok || is_told, "{finding:?}");
        }
        findings.iter().map(|finding| finding.level).collect()
    }
}
