//! Requirement files: the named requirements of a site, loaded at every start.
//!
//! ```yaml
//! requirements:
//!   archive:
//!     selector: class=od,type=fc
//!     time_to_live: 12h
//!   viewer: {selector: "param=t,step=0/to/24", versions: newest, on_full: break, quota: 2GiB}
//!   workers: {selector: param=t, group: true}
//! ```
//!
//! Every error names the line. The pool validates selectors and names when it receives them.

use crate::error::{Code, Error, Result};
use crate::limits::REQUIREMENT_NAME_BYTES_MAX;
use crate::size::parse_bytes;
use crate::value::nanoseconds;
use crate::yaml::{self, Read, YamlEntry, YamlFault, YamlFields};

/// The maximum size of a file.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The expected form of a duration.
const TIME: &str = "a length of time such as 90m or 1h30m";

/// A requirement in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRequirement {
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Its selector.
    pub selector: String,
    /// Its time to live in nanoseconds while no client uses it; `None`: until it is retracted.
    pub time_to_live_ns: Option<u64>,
    /// Only the newest version of each key is retained.
    pub newest_only: bool,
    /// It is broken if memory is full, instead of blocking offers.
    pub breaks_on_full: bool,
    /// Bytes that a requirement that breaks may retain; `None`: no limit until memory is full.
    pub quota_bytes: Option<u64>,
    /// Nanoseconds without a release after which it is stuck; `None`: as the pool is configured.
    pub stuck_after_ns: Option<u64>,
    /// It is a consumer group.
    pub is_group: bool,
}

/// Checks the name of a requirement or group. Names are used on command lines, in addresses and in logs.
///
/// # Errors
/// `InvalidArgument`, with the allowed form.
pub fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+:-/".contains(c);
    let cause = if name.is_empty() || name.len() > REQUIREMENT_NAME_BYTES_MAX {
        format!(
            "it has {} bytes; 1 to {REQUIREMENT_NAME_BYTES_MAX} are allowed",
            name.len()
        )
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(is_plain) {
        "ASCII letters, digits and ._+:-/ are allowed, and the first must be a letter or digit".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(REQUIREMENT_NAME_BYTES_MAX).collect();
    Err(Error::new(Code::InvalidArgument, format!("name {shown:?}"), cause))
}

/// Parses a file; returns the requirements in their order.
///
/// # Errors
/// `TooLarge` for a file of more than 1 MiB; `InvalidArgument` for any other error, with the line as the subject.
pub fn parse_yaml(text: &str) -> Result<Vec<WrittenRequirement>> {
    if text.len() > FILE_BYTES_MAX {
        let cause = format!("more than {FILE_BYTES_MAX} bytes");
        return Err(Error::new(Code::TooLarge, "requirements", cause));
    }
    let trouble = |t: YamlFault| Error::new(Code::InvalidArgument, format!("requirements line {}", t.line), t.why);
    read(text).map_err(trouble)
}

fn read(text: &str) -> Read<Vec<WrittenRequirement>> {
    let root = yaml::parse(text)?;
    let file = YamlFields::new(&root, "a file of requirements", &["requirements"])?;
    file.need("requirements")?
        .map("requirements")?
        .iter()
        .map(one)
        .collect()
}

fn one(entry: &YamlEntry) -> Read<WrittenRequirement> {
    let what = format!("requirement {}", entry.name);
    let known = [
        "selector",
        "time_to_live",
        "versions",
        "on_full",
        "quota",
        "stuck_after",
        "group",
    ];
    let fields = YamlFields::new(&entry.value, &what, &known)?;
    let selector = fields.need("selector")?.text("selector")?.to_owned();
    let time = |text: &str| nanoseconds(text).filter(|&time| time > 0);
    let second_of =
        |words: [&'static str; 2]| move |text: &str| words.iter().position(|&w| w == text).map(|at| at == 1);
    Ok(WrittenRequirement {
        line: entry.line,
        name: entry.name.clone(),
        selector,
        time_to_live_ns: fields.read("time_to_live", TIME, time)?,
        newest_only: fields
            .read("versions", "all or newest", second_of(["all", "newest"]))?
            .unwrap_or(false),
        breaks_on_full: fields
            .read("on_full", "wait or break", second_of(["wait", "break"]))?
            .unwrap_or(false),
        quota_bytes: fields.read("quota", "a number of bytes such as 512MiB", |text| {
            parse_bytes(text).ok()
        })?,
        stuck_after_ns: fields.read("stuck_after", TIME, time)?,
        is_group: fields
            .read("group", "true or false", second_of(["false", "true"]))?
            .unwrap_or(false),
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
            viewer: {selector: \"param=t,step=0/to/24\", versions: newest, on_full: break, quota: 2GiB, stuck_after: 5s}\n  \
            workers: {selector: param=t, group: true}\n";
        let read = parse_yaml(text).unwrap();
        assert_eq!(
            read,
            [
                WrittenRequirement {
                    line: 2,
                    name: "archive".to_owned(),
                    selector: "class=od,type=fc".to_owned(),
                    time_to_live_ns: Some(90 * 60 * 1_000_000_000),
                    newest_only: false,
                    breaks_on_full: false,
                    quota_bytes: None,
                    stuck_after_ns: None,
                    is_group: false,
                },
                WrittenRequirement {
                    line: 5,
                    name: "viewer".to_owned(),
                    selector: "param=t,step=0/to/24".to_owned(),
                    time_to_live_ns: None,
                    newest_only: true,
                    breaks_on_full: true,
                    quota_bytes: Some(2 << 30),
                    stuck_after_ns: Some(5_000_000_000),
                    is_group: false,
                },
                WrittenRequirement {
                    line: 6,
                    name: "workers".to_owned(),
                    selector: "param=t".to_owned(),
                    time_to_live_ns: None,
                    newest_only: false,
                    breaks_on_full: false,
                    quota_bytes: None,
                    stuck_after_ns: None,
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
                "line 3 a occurs twice",
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
