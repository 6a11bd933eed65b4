//! The secrets of a server (`junctura pool serve --security FOLDER`): whether its files are there, private, and valid.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use junctura::Code;
use junctura_link::{CertificateTimes, ServerTls, TokenAuthority};

use super::{DoctorFinding, MachineView};
use crate::admin::security::{AUTHORITY, AUTHORITY_KEY, CERTIFICATE, PRIVATE_KEY};
use crate::admin::token::utc;

/// A certificate that ends within this time is reported.
const SOON: Duration = Duration::from_hours(14 * 24);
/// The files that only their owner may read.
const PRIVATE: [&str; 4] = [PRIVATE_KEY, AUTHORITY_KEY, "tokens.key", "tokens.list"];
const MAKE_CERTIFICATE: &str = "make a new one: junctura cert FOLDER --host HOST; then restart the server";
const MAKE_TOKEN: &str = "make one: junctura token make FOLDER --for NAME --out FILE";

pub(super) fn directory(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "secrets";
    let Some(directory) = &machine.security else {
        return Vec::new();
    };
    let Some(mode) = mode(directory).filter(|_| directory.is_dir()) else {
        let found = format!("{} is no directory that can be read", directory.display());
        let remedy = "make it: junctura cert FOLDER --host HOST, and junctura token make FOLDER --for NAME";
        return vec![DoctorFinding::fail(
            CHECK,
            found,
            "a server with --security FOLDER cannot start",
            remedy,
        )];
    };
    if mode & 0o022 != 0 {
        let found = format!("other users can write to {} (mode {mode:03o})", directory.display());
        let so = "they can replace the certificate, the key and the list of tokens";
        return vec![DoctorFinding::fail(CHECK, found, so, "chmod 700 the directory")];
    }
    let open: Vec<&str> = PRIVATE
        .into_iter()
        .filter(|name| self::mode(&directory.join(name)).is_some_and(|mode| mode & 0o077 != 0))
        .collect();
    if !open.is_empty() {
        let found = format!("other users can read {} in {}", open.join(", "), directory.display());
        let so = "a server does not start with them; a user that has read them can serve in its name, or make tokens";
        let remedy = "chmod 600 these files; if other users have had access, make all secrets anew";
        return vec![DoctorFinding::fail(CHECK, found, so, remedy)];
    }
    vec![DoctorFinding::ok(
        CHECK,
        format!("{}: only their owner can read the secrets", directory.display()),
    )]
}

pub(super) fn certificate(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "certificate";
    const SO: &str = "a server with --security FOLDER cannot start";
    let Some(directory) = &machine.security else {
        return Vec::new();
    };
    let (path, key) = (directory.join(CERTIFICATE), directory.join(PRIVATE_KEY));
    for path in [&path, &key] {
        if !path.exists() {
            return vec![DoctorFinding::fail(
                CHECK,
                format!("{} is missing", path.display()),
                SO,
                MAKE_CERTIFICATE,
            )];
        }
    }
    if let Err(error) = ServerTls::read(&path, &key) {
        return vec![DoctorFinding::fail(CHECK, error.to_string(), SO, MAKE_CERTIFICATE)];
    }
    let mut findings = vec![times(CHECK, &path)];
    let authority = directory.join(AUTHORITY);
    // A site with an authority of its own keeps it elsewhere.
    if authority.exists() {
        findings.push(times("authority", &authority));
    }
    findings
}

fn times(check: &'static str, path: &Path) -> DoctorFinding {
    let so = "clients refuse the server";
    let found = match CertificateTimes::read(path) {
        Ok(found) => found,
        Err(error) => return DoctorFinding::fail(check, error.to_string(), so, MAKE_CERTIFICATE),
    };
    let now = now();
    let from = found.iter().map(|times| times.from).max().unwrap_or_default();
    let until = found.iter().map(|times| times.until).min().unwrap_or_default();
    let (name, end) = (path.display(), utc(until));
    if now > until {
        return DoctorFinding::fail(check, format!("{name} expired at {end}"), so, MAKE_CERTIFICATE);
    }
    if now < from {
        let found = format!("{name} is not valid before {}", utc(from));
        return DoctorFinding::fail(
            check,
            found,
            so,
            "compare the clock of this machine with that of its maker",
        );
    }
    if until - now < SOON.as_secs() {
        return DoctorFinding::warn(
            check,
            format!("{name} expires at {end}"),
            "clients will refuse the server",
            MAKE_CERTIFICATE,
        );
    }
    DoctorFinding::ok(check, format!("{name} is valid until {end}"))
}

pub(super) fn tokens(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "tokens";
    let Some(directory) = &machine.security else {
        return Vec::new();
    };
    let tokens = match TokenAuthority::read(directory) {
        Ok(tokens) => tokens,
        Err(error) => {
            let remedy = if error.code() == Code::NotFound {
                MAKE_TOKEN
            } else {
                "correct the file, or remove it and make new tokens"
            };
            let so = "a server with --security FOLDER cannot start";
            return vec![DoctorFinding::fail(CHECK, error.to_string(), so, remedy)];
        }
    };
    let listed = match tokens.list() {
        Ok(listed) => listed,
        Err(error) => {
            let remedy = "chmod 600 the file; if its content is damaged, remove it and make new tokens";
            return vec![DoctorFinding::fail(
                CHECK,
                error.to_string(),
                "the server refuses every client",
                remedy,
            )];
        }
    };
    let now = now();
    let expired = listed.iter().filter(|token| now >= token.until).count();
    let valid = listed.len() - expired;
    let found = format!("{valid} valid, {expired} expired");
    if valid == 0 {
        let found = if expired == 0 {
            "the list has no token".to_owned()
        } else {
            found
        };
        return vec![DoctorFinding::warn(
            CHECK,
            found,
            "the server refuses every client",
            MAKE_TOKEN,
        )];
    }
    let soon = listed
        .iter()
        .filter(|token| now < token.until && token.until - now < SOON.as_secs());
    let soon: Vec<String> = soon.map(|token| format!("{:08x} ({})", token.id, token.name)).collect();
    if soon.is_empty() {
        return vec![DoctorFinding::ok(CHECK, found)];
    }
    let found = format!(
        "{found}; within {} days expire {}",
        SOON.as_secs() / 86_400,
        soon.join(", ")
    );
    vec![DoctorFinding::warn(
        CHECK,
        found,
        "their clients will be disconnected and refused",
        MAKE_TOKEN,
    )]
}

/// The permissions of a file or folder, if it exists.
fn mode(path: &Path) -> Option<u32> {
    let found = std::fs::metadata(path).ok()?;
    Some(found.permissions().mode() & 0o777)
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests {
    use junctura_link::AccessRights;
    use rcgen::{CertificateParams, KeyPair};

    use super::super::FindingLevel::{Fail, Ok, Warn};
    use super::super::testing::{levels, machine};
    use super::*;

    const DAY: i64 = 86_400;

    /// A directory whose certificate is valid from one day to another, counted from today.
    fn secrets(from: i64, until: i64) -> (tempfile::TempDir, MachineView) {
        let (folder, mut machine) = machine(&[]);
        let directory = folder.path().join("secrets");
        std::fs::create_dir(&directory).unwrap();
        let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let now = time::OffsetDateTime::now_utc();
        parameters.not_before = now + time::Duration::seconds(from * DAY);
        parameters.not_after = now + time::Duration::seconds(until * DAY);
        let key = KeyPair::generate().unwrap();
        let text = parameters.self_signed(&key).unwrap().pem();
        std::fs::write(directory.join(CERTIFICATE), text).unwrap();
        std::fs::write(directory.join(PRIVATE_KEY), key.serialize_pem()).unwrap();
        close(&directory.join(PRIVATE_KEY), 0o600);
        machine.security = Some(directory);
        (folder, machine)
    }

    fn close(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn without_a_directory_nothing_is_found() {
        let (_folder, mut machine) = machine(&[]);
        let all = |machine: &MachineView| [directory(machine), certificate(machine), tokens(machine)].concat();
        assert!(all(&machine).is_empty());
        machine.security = Some("/nowhere".into());
        assert_eq!(levels(&all(&machine)), [Fail, Fail, Fail]);
    }

    #[test]
    fn certificates_end() {
        for (from, until, level) in [(-1, 30, Ok), (-1, 13, Warn), (-9, -1, Fail), (1, 30, Fail)] {
            let (_folder, machine) = secrets(from, until);
            assert_eq!(levels(&certificate(&machine)), [level], "{from} {until}");
        }
        let (_folder, machine) = secrets(-1, 30);
        let secrets = machine.security.clone().unwrap();
        std::fs::copy(secrets.join(CERTIFICATE), secrets.join(AUTHORITY)).unwrap();
        assert_eq!(levels(&certificate(&machine)), [Ok, Ok]);
        std::fs::remove_file(secrets.join(PRIVATE_KEY)).unwrap();
        assert_eq!(levels(&certificate(&machine)), [Fail]);
        std::fs::write(secrets.join(PRIVATE_KEY), KeyPair::generate().unwrap().serialize_pem()).unwrap();
        assert_eq!(levels(&certificate(&machine)), [Fail], "they do not belong together");
    }

    #[test]
    fn secrets_that_others_can_read_are_named() {
        let (_folder, machine) = secrets(-1, 30);
        assert_eq!(levels(&directory(&machine)), [Ok]);
        close(&machine.security.clone().unwrap().join(PRIVATE_KEY), 0o640);
        let findings = directory(&machine);
        assert_eq!(levels(&findings), [Fail]);
        assert!(findings[0].found.contains(PRIVATE_KEY) && !findings[0].found.contains(CERTIFICATE));
        close(&machine.security.clone().unwrap(), 0o777);
        assert!(directory(&machine)[0].found.contains("other users can write"));
    }

    #[test]
    fn tokens_are_counted() {
        let (_folder, machine) = secrets(-1, 30);
        let secrets = machine.security.clone().unwrap();
        assert_eq!(levels(&tokens(&machine)), [Fail]);
        let authority = TokenAuthority::read_or_create(&secrets).unwrap();
        assert_eq!(levels(&tokens(&machine)), [Warn]);
        let make = |days: u64| {
            let time = Duration::from_hours(24 * days);
            authority.make("viewer", AccessRights::READ, time).unwrap()
        };
        make(100);
        assert_eq!(levels(&tokens(&machine)), [Ok]);
        let (_, claims) = make(3);
        let findings = tokens(&machine);
        assert_eq!(levels(&findings), [Warn]);
        assert!(
            findings[0].found.contains(&format!("{:08x} (viewer)", claims.id)),
            "{:?}",
            findings[0]
        );
        std::fs::write(secrets.join("tokens.list"), "nonsense").unwrap();
        assert_eq!(levels(&tokens(&machine)), [Fail]);
    }
}
