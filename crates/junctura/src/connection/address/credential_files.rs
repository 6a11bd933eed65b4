//! The files of a user's token and trusted authorities: where they are looked for, and what an error reports about that.

use std::path::PathBuf;

use junctura_model::{Code, Error};

/// The variables with the files of the token and of the trusted authorities.
const TOKEN_VARIABLE: &str = "JUNCTURA_TOKEN_FILE";
const AUTHORITY_VARIABLE: &str = "JUNCTURA_CA_FILE";

/// Which files a client uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CredentialFiles {
    pub(super) token: SearchedFile,
    pub(super) authority: SearchedFile,
}

/// A file that is named or found, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchedFile {
    Found(PathBuf),
    Missing(String),
}

impl SearchedFile {
    pub(super) fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Found(path) => Some(path),
            Self::Missing(_) => None,
        }
    }
}

impl CredentialFiles {
    /// Looks for the files that are not given: in the environment, and beyond loopback in the user's configuration, because
    /// both are required there. Over loopback a server may have no certificate, so that `ca.pem` would exclude it.
    pub(super) fn find(token: Option<&PathBuf>, authority: Option<&PathBuf>, is_beyond: bool) -> Self {
        let folder = configuration();
        let find = |given: Option<&PathBuf>, variable: &str, name: &str| {
            let named = given.cloned().or_else(|| std::env::var_os(variable).map(PathBuf::from));
            search(
                named,
                variable,
                folder.as_ref().map(|folder| folder.join(name)),
                is_beyond,
            )
        };
        Self {
            token: find(token, TOKEN_VARIABLE, "token"),
            authority: find(authority, AUTHORITY_VARIABLE, "ca.pem"),
        }
    }

    /// Adds to a refusal for want of a token or an authority where they were looked for.
    pub(super) fn explain(&self, error: Error) -> Error {
        let missing = match (error.code(), &self.token, &self.authority) {
            (Code::Denied, SearchedFile::Missing(why), _) if error.subject().ends_with("token") => why,
            (Code::Denied, _, SearchedFile::Missing(why)) if error.cause().contains("through TLS alone") => why,
            _ => return error,
        };
        Error::new(error.code(), error.subject(), format!("{}; {missing}", error.cause()))
    }
}

fn search(named: Option<PathBuf>, variable: &str, usual: Option<PathBuf>, is_beyond: bool) -> SearchedFile {
    match (named, usual) {
        (Some(named), _) => SearchedFile::Found(named),
        (None, Some(usual)) if is_beyond && usual.is_file() => SearchedFile::Found(usual),
        (None, Some(usual)) if is_beyond => {
            SearchedFile::Missing(format!("{variable} is not set, and {} does not exist", usual.display()))
        }
        (None, Some(usual)) if usual.is_file() => {
            let path = usual.display();
            SearchedFile::Missing(format!(
                "{variable} is not set, and {path} is used beyond loopback only: set {variable}={path}"
            ))
        }
        _ => SearchedFile::Missing(format!("{variable} is not set")),
    }
}

/// The folder of the user's configuration of Junctura.
fn configuration() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let configuration = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
    Some(configuration.join("junctura"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(file: SearchedFile) -> String {
        match file {
            SearchedFile::Missing(why) => why,
            SearchedFile::Found(path) => path.display().to_string(),
        }
    }

    #[test]
    fn the_usual_file_is_used_beyond_loopback_and_named_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let (usual, absent) = (folder.path().join("token"), folder.path().join("none"));
        std::fs::write(&usual, "").unwrap();
        let search = |named: Option<&str>, usual: &PathBuf, is_beyond| {
            super::search(named.map(PathBuf::from), "VARIABLE", Some(usual.clone()), is_beyond)
        };
        assert_eq!(search(Some("mine"), &usual, true), SearchedFile::Found("mine".into()));
        assert_eq!(search(None, &usual, true), SearchedFile::Found(usual.clone()));
        let why = missing(search(None, &usual, false));
        assert!(
            why.contains("used beyond loopback only") && why.contains(&format!("VARIABLE={}", usual.display())),
            "{why}"
        );
        let why = missing(search(None, &absent, true));
        assert!(
            why.contains("VARIABLE is not set") && why.contains(&absent.display().to_string()),
            "{why}"
        );
        assert_eq!(missing(search(None, &absent, false)), "VARIABLE is not set");
    }

    #[test]
    fn only_a_refusal_for_want_of_a_file_is_explained() {
        let files = CredentialFiles {
            token: SearchedFile::Missing("no token".to_owned()),
            authority: SearchedFile::Missing("no authority".to_owned()),
        };
        let explained = |code, subject: &str, cause: &str| files.explain(Error::new(code, subject, cause)).to_string();
        assert!(explained(Code::Denied, "tcp://h:1: token", "asks for one").ends_with("asks for one; no token"));
        assert!(explained(Code::Denied, "tcp://h:1", "reached through TLS alone: …").ends_with("; no authority"));
        assert!(!explained(Code::Denied, "tcp://h:1: loopback connection", "another user").contains("; no"));
        assert!(!explained(Code::Unavailable, "tcp://h:1: token", "").contains("no token"));
    }
}
