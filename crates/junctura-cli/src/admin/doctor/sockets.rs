//! Addresses, the folder of sockets, what servers have left there, and a hand-over from end to end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use junctura::Pool;
use junctura_transport::ServerAddress;
use rustix::process::geteuid;

use super::{DoctorFinding, MachineView, address as meant};

/// A server that does not answer in this time is absent.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn address(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "address";
    let mut findings = vec![match meant(machine) {
        _ if endpoint(machine).is_some() => DoctorFinding::ok(CHECK, machine.pool.clone()),
        Ok(address) => DoctorFinding::ok(CHECK, address.to_string()),
        Err(error) => DoctorFinding::fail(
            CHECK,
            error.to_string(),
            "commands that name no pool find none",
            "set JUNCTURA_POOL, or --pool, to unix:NAME, unix:/absolute/path.sock or unix:@NAME",
        ),
    }];
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    findings.extend(judge_runtime(runtime.as_deref()));
    findings
}

fn judge_runtime(runtime: Option<&Path>) -> Option<DoctorFinding> {
    const CHECK: &str = "XDG_RUNTIME_DIR";
    let fallback = format!("/tmp/junctura-{}", geteuid().as_raw());
    let runtime = runtime?;
    let is_ours = std::fs::metadata(runtime).is_ok_and(|about| about.is_dir() && about.uid() == geteuid().as_raw());
    Some(if runtime.is_absolute() && is_ours {
        DoctorFinding::ok(CHECK, runtime.display().to_string())
    } else {
        DoctorFinding::warn(
            CHECK,
            format!("{} is no directory of this user's", runtime.display()),
            &format!(
                "names of pools are looked for in {fallback}: programs with and without this variable do not meet"
            ),
            "unset it in jobs that inherit it, or name the pool by a path: unix:/path.sock",
        )
    })
}

/// Whether a socket can be made where the pool's is, and reached.
pub(super) fn directory(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "socket folder";
    let Ok(address) = meant(machine) else { return Vec::new() };
    let Some(folder) = address.path().and_then(|path| path.parent().map(Path::to_owned)) else {
        return vec![DoctorFinding::ok(CHECK, "an abstract address needs none")];
    };
    let about = match std::fs::symlink_metadata(&folder) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && matches!(address, ServerAddress::Named(_)) => {
            return vec![judge_parent(CHECK, &folder)];
        }
        Err(error) => {
            let remedy = "make the directory, or name another";
            return vec![DoctorFinding::fail(
                CHECK,
                format!("{}: {error}", folder.display()),
                "no server can listen there",
                remedy,
            )];
        }
    };
    let found = folder.display().to_string();
    if matches!(address, ServerAddress::Named(_)) {
        let is_closed =
            about.is_dir() && about.uid() == geteuid().as_raw() && (about.mode() & 0o7777) == (about.mode() & 0o7700);
        if !is_closed {
            return vec![DoctorFinding::fail(
                CHECK,
                format!(
                    "{found} has mode {:04o} and belongs to user {}",
                    about.mode() & 0o7777,
                    about.uid()
                ),
                "others could listen in a server's place, so servers and clients refuse it",
                &format!("if it is yours: chmod 700 {found}; else set XDG_RUNTIME_DIR to a directory of your own"),
            )];
        }
    }
    vec![match listen_and_connect(&folder) {
        Ok(()) => DoctorFinding::ok(CHECK, format!("{found}: sockets can be made and reached")),
        Err(error) => DoctorFinding::fail(
            CHECK,
            format!("{found}: {error}"),
            "no server can listen there",
            "a file system without sockets, a full disk or a path of more than 100 letters: set XDG_RUNTIME_DIR to a local directory",
        ),
    }]
}

fn judge_parent(check: &'static str, folder: &Path) -> DoctorFinding {
    let parent = folder.parent().unwrap_or(Path::new("/"));
    match tempfile::tempdir_in(parent) {
        Ok(_) => DoctorFinding::ok(check, format!("{} is not there yet, and can be made", folder.display())),
        Err(error) => DoctorFinding::fail(
            check,
            format!("{} cannot be made: {error}", folder.display()),
            "no server can listen there",
            "set XDG_RUNTIME_DIR to a directory of your own that can be written",
        ),
    }
}

fn listen_and_connect(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".doctor-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path)?;
    let connected = UnixStream::connect(&path).and_then(|mut client| {
        client.write_all(b"?")?;
        listener.accept()?.0.read_exact(&mut [0u8])
    });
    std::fs::remove_file(&path)?;
    connected
}

/// Running servers, and sockets of servers that no longer run.
pub(super) fn left_behind(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "servers";
    let Ok(Some(folder)) =
        meant(machine).map(|address| address.path().and_then(|path| path.parent().map(Path::to_owned)))
    else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    sockets.sort();
    let (alive, dead): (Vec<_>, Vec<_>) = sockets.iter().partition(|path| UnixStream::connect(path).is_ok());
    let names = |paths: &[&PathBuf]| -> String {
        let names: Vec<String> = paths
            .iter()
            .filter_map(|path| path.file_stem().map(|name| name.to_string_lossy().into_owned()))
            .collect();
        names.join(", ")
    };
    let mut findings = vec![DoctorFinding::ok(
        CHECK,
        match alive.len() {
            0 => format!("none runs in {}", folder.display()),
            count => format!("{count} in {}: {}", folder.display(), names(&alive)),
        },
    )];
    if !dead.is_empty() {
        findings.push(DoctorFinding::warn(
            "stale sockets",
            format!(
                "{}: the server of this name has ended without removing its socket",
                names(&dead)
            ),
            "the objects of these servers are lost; the next server of the name replaces the socket",
            &format!(
                "nothing is needed; rm {} removes one",
                folder.join("NAME.sock").display()
            ),
        ));
    }
    findings
}

/// The host and port of a pool elsewhere.
fn endpoint(machine: &MachineView) -> Option<&str> {
    machine.pool.strip_prefix("tcp://").filter(|rest| rest.contains(':'))
}

/// Whether a server listens at the address of a remote pool.
pub(super) fn elsewhere(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "pool elsewhere";
    let Some(endpoint) = endpoint(machine) else {
        return Vec::new();
    };
    let reached = endpoint.to_socket_addrs().and_then(|mut addresses| {
        let address = addresses.next().ok_or(std::io::ErrorKind::NotFound)?;
        TcpStream::connect_timeout(&address, PATIENCE)
    });
    vec![match reached {
        Ok(_) => DoctorFinding::ok(CHECK, format!("a server listens at {endpoint}")),
        Err(error) => DoctorFinding::warn(
            CHECK,
            format!("{endpoint}: {error}"),
            "clients of this pool get Unavailable",
            "check that its server runs, that it listens for other machines, and that no firewall blocks the port",
        ),
    }]
}

pub(super) fn loopback(_: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "network loopback";
    let reached = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| {
        let port = listener.local_addr()?.port();
        let mut client = TcpStream::connect(("127.0.0.1", port))?;
        client.write_all(b"?")?;
        listener.accept()?.0.read_exact(&mut [0u8])
    });
    vec![match reached {
        Ok(()) => DoctorFinding::ok(CHECK, "127.0.0.1 can be listened on and reached"),
        Err(error) => DoctorFinding::warn(
            CHECK,
            format!("127.0.0.1: {error}"),
            "nothing on this machine, where pools use unix sockets; over a network nothing works",
            "ip link set lo up; look at firewall rules and the container's network",
        ),
    }]
}

/// A small and a large object, offered and received.
pub(super) fn hand_over() -> DoctorFinding {
    const CHECK: &str = "hand-over";
    let handed = || -> junctura::Result<bool> {
        let pool = Pool::builder()
            .schema("free")
            .budget_bytes(32 << 20)
            .name("junctura doctor")
            .open()?;
        let large = vec![7u8; 1 << 20];
        pool.offer([("space", "doctor"), ("name", "small")], b"x")?;
        pool.offer([("space", "doctor"), ("name", "large")], &large)?;
        let small = pool.demand("name=small", None)?;
        Ok(small.payload() == b"x" && pool.demand("name=large", None)?.payload() == large)
    };
    match handed() {
        Ok(true) => DoctorFinding::ok(CHECK, "a pool of this process transferred a small and a large object"),
        Ok(false) => DoctorFinding::fail(
            CHECK,
            "a received object differs from the offered one",
            "payloads are damaged on their way",
            "test the memory of this machine, and report this",
        ),
        Err(error) => DoctorFinding::fail(
            CHECK,
            error.to_string(),
            "no program of this user can use a pool here",
            "check the failures above; if there are none, report this",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::FindingLevel;
    use super::super::testing::{levels, machine};
    use super::*;

    #[test]
    fn an_address_that_is_none_is_told_once() {
        let (_folder, mut machine) = machine(&[]);
        machine.pool = "nonsense".to_owned();
        assert_eq!(levels(&address(&machine))[0], FindingLevel::Fail);
        assert!(directory(&machine).is_empty() && left_behind(&machine).is_empty());
    }

    #[test]
    fn a_pool_elsewhere_is_looked_for() {
        let (_folder, mut machine) = machine(&[]);
        assert!(elsewhere(&machine).is_empty());
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        machine.pool = format!("tcp://{}", listener.local_addr().unwrap());
        assert_eq!(levels(&address(&machine))[0], FindingLevel::Ok);
        assert_eq!(levels(&elsewhere(&machine)), [FindingLevel::Ok]);
        drop(listener);
        assert_eq!(levels(&elsewhere(&machine)), [FindingLevel::Warn]);
    }

    #[test]
    fn a_runtime_directory_must_be_ours() {
        let folder = tempfile::tempdir().unwrap();
        assert!(judge_runtime(None).is_none());
        assert_eq!(
            levels(judge_runtime(Some(folder.path())).as_slice()),
            [FindingLevel::Ok]
        );
        assert_eq!(
            levels(judge_runtime(Some(&folder.path().join("missing"))).as_slice()),
            [FindingLevel::Warn]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_no_place_for_a_socket() {
        let (folder, machine) = machine(&[]);
        assert_eq!(levels(&directory(&machine)), [FindingLevel::Fail]);
        std::fs::create_dir(folder.path().join("run")).unwrap();
        assert_eq!(levels(&directory(&machine)), [FindingLevel::Ok]);
        assert_eq!(std::fs::read_dir(folder.path().join("run")).unwrap().count(), 0);
    }

    #[test]
    fn sockets_of_dead_servers_are_told() {
        let (folder, machine) = machine(&[("run/notes.txt", "")]);
        assert_eq!(levels(&left_behind(&machine)), [FindingLevel::Ok]);
        drop(UnixListener::bind(folder.path().join("run/dead.sock")).unwrap());
        let _alive = UnixListener::bind(folder.path().join("run/alive.sock")).unwrap();
        let findings = left_behind(&machine);
        assert_eq!(levels(&findings), [FindingLevel::Ok, FindingLevel::Warn]);
        assert!(findings[0].found.ends_with(": alive") && findings[1].found.starts_with("dead:"));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told() {
        if geteuid().is_root() {
            let nowhere = Path::new("/proc/nowhere/junctura");
            assert_eq!(levels(&[judge_parent("x", nowhere)]), [FindingLevel::Fail]);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o500)).unwrap();
        assert_eq!(
            levels(&[judge_parent("x", &folder.path().join("junctura"))]),
            [FindingLevel::Fail]
        );
    }

    #[test]
    fn a_hand_over_works_here() {
        assert_eq!(levels(&[hand_over()]), [FindingLevel::Ok]);
    }
}
