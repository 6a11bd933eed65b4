//! A file of requirements: what a site wants kept, by name, written once and loaded at every start.
//!
//! ```yaml
//! requirements:
//!   archive:
//!     selector: class=od,type=fc
//!     time_to_live: 12h
//!   viewer: {selector: "param=t,step=0/to/24", versions: newest}
//!   workers: {selector: param=t, group: true}
//! ```
//! Every refusal names the line. What a selector or a name may be, the pool decides when it is asked.

use crate::error::{Code, Error, Result};
use crate::value::nanoseconds;
use crate::yaml::{self, Entry, Fields, Read, Trouble};

/// A file may not be longer.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// One requirement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// What it requires.
    pub selector: String,
    /// Nanoseconds that it stands while nobody uses it; `None`: until it is retracted.
    pub time_to_live_ns: Option<u64>,
    /// Of each key only the newest version is kept.
    pub newest_only: bool,
    /// The members of a group share it.
    pub is_group: bool,
}

/// Reads a file, in its order.
///
/// # Errors
/// `TooLarge` for a file of more than 1 MiB; `InvalidArgument` for anything else, with the line as the subject.
pub fn parse_yaml(text: &str) -> Result<Vec<Written>> {
    if text.len() > FILE_BYTES_MAX {
        let cause = format!("more than {FILE_BYTES_MAX} bytes");
        return Err(Error::new(Code::TooLarge, "requirements", cause));
    }
    let trouble = |t: Trouble| Error::new(Code::InvalidArgument, format!("requirements line {}", t.line), t.why);
    read(text).map_err(trouble)
}

fn read(text: &str) -> Read<Vec<Written>> {
    let root = yaml::parse(text)?;
    let file = Fields::new(&root, "a file of requirements", &["requirements"])?;
    file.need("requirements")?
        .map("requirements")?
        .iter()
        .map(one)
        .collect()
}

fn one(entry: &Entry) -> Read<Written> {
    let what = format!("requirement {}", entry.name);
    let fields = Fields::new(&entry.value, &what, &["selector", "time_to_live", "versions", "group"])?;
    let selector = fields.need("selector")?.text("selector")?.to_owned();
    let time = |text: &str| nanoseconds(text).filter(|&time| time > 0);
    let newest_only = |text: &str| ["all", "newest"].iter().position(|&one| one == text).map(|at| at == 1);
    let is_group = |text: &str| ["false", "true"].iter().position(|&one| one == text).map(|at| at == 1);
    Ok(Written {
        line: entry.line,
        name: entry.name.clone(),
        selector,
        time_to_live_ns: fields.read("time_to_live", "a length of time such as 90m or 1h30m", time)?,
        newest_only: fields.read("versions", "all or newest", newest_only)?.unwrap_or(false),
        is_group: fields.read("group", "true or false", is_group)?.unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(text: &str) -> String {
        let error = parse_yaml(text).unwrap_err();
        format!("{} {}", error.subject(), error.cause())
    }

    #[test]
    fn a_file_is_read_in_its_order() {
        let text = "requirements:\n  archive:\n    selector: class=od,type=fc\n    time_to_live: 1h30m\n  \
            viewer: {selector: \"param=t,step=0/to/24\", versions: newest}\n  \
            workers: {selector: param=t, group: true}\n";
        let read = parse_yaml(text).unwrap();
        assert_eq!(
            read,
            [
                Written {
                    line: 2,
                    name: "archive".to_owned(),
                    selector: "class=od,type=fc".to_owned(),
                    time_to_live_ns: Some(90 * 60 * 1_000_000_000),
                    newest_only: false,
                    is_group: false,
                },
                Written {
                    line: 5,
                    name: "viewer".to_owned(),
                    selector: "param=t,step=0/to/24".to_owned(),
                    time_to_live_ns: None,
                    newest_only: true,
                    is_group: false,
                },
                Written {
                    line: 6,
                    name: "workers".to_owned(),
                    selector: "param=t".to_owned(),
                    time_to_live_ns: None,
                    newest_only: false,
                    is_group: true,
                }
            ]
        );
        assert_eq!(parse_yaml("requirements:").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, expected) in [
            ("", "line 1 the file is empty"),
            ("wanted: {}", "line 1 a file of requirements has no field wanted"),
            ("requirements: [a]", "line 1 requirements must be a map"),
            (
                "requirements:\n  a: {}",
                "line 2 requirement a needs the field selector",
            ),
            (
                "requirements:\n  a: {selector: x=1}\n  a: {selector: x=1}",
                "line 3 a stands twice",
            ),
            (
                "requirements:\n  a:\n    selector: x=1\n    ttl: 1h",
                "line 4 requirement a has no field ttl",
            ),
            (
                "requirements:\n  a:\n    selector: x=1\n    time_to_live: 0s",
                "line 4 time_to_live must be",
            ),
            (
                "requirements:\n  a:\n    selector: x=1\n    time_to_live: 5",
                "line 4 time_to_live must be",
            ),
            (
                "requirements:\n  a:\n    selector: x=1\n    versions: last",
                "line 4 versions must be all or newest",
            ),
        ] {
            assert!(
                cause(text).starts_with(&format!("requirements {expected}")),
                "{}",
                cause(text)
            );
        }
        let long = "x".repeat(FILE_BYTES_MAX + 1);
        assert_eq!(parse_yaml(&long).unwrap_err().code(), Code::TooLarge);
    }
}
