//! Checks a mapping file before the program starts: the library that reads it could report an error only at the first file.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use junctura::{Code, Error, Pool, Result, Retention, Schema};

/// A line of a section.
struct MapLine<'t> {
    number: usize,
    name: &'t str,
    value: &'t str,
}

/// The lines of one section.
#[derive(Default)]
struct MapSection<'t> {
    lines: Vec<MapLine<'t>>,
}

/// # Errors
/// `InvalidArgument`, which names the first line that cannot be used, and how many others cannot.
pub(super) fn check(path: &Path, pool: &Pool) -> Result<()> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::new(Code::InvalidArgument, path.display().to_string(), error.to_string()))?;
    let mistakes = mistakes(&text, &pool.schemas()?);
    let Some((line, cause)) = mistakes.first() else {
        return Ok(());
    };
    let others = match mistakes.len() - 1 {
        0 => String::new(),
        1 => "; 1 other line cannot be used either".to_owned(),
        count => format!("; {count} other lines cannot be used either"),
    };
    let subject = format!("{}: line {line}", path.display());
    Err(Error::new(Code::InvalidArgument, subject, format!("{cause}{others}")))
}

/// Returns the lines that cannot be used, with the reasons.
fn mistakes(text: &str, schemas: &[Arc<Schema>]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut sections: Vec<MapSection<'_>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(variables) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if variables.trim().is_empty() {
                found.push((number, "the section names no variable".to_owned()));
            }
            sections.push(MapSection::default());
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
            found.push((number, "expected NAME = VALUE or [VARIABLE ...]".to_owned()));
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if value.is_empty() {
            found.push((number, format!("{name} has no value")));
        } else if let Some(section) = sections.last_mut() {
            found.extend(
                words(value)
                    .filter_map(|word| wrong_word(&word))
                    .map(|cause| (number, cause)),
            );
            section.lines.push(MapLine { number, name, value });
        } else if name != "retention" {
            let cause = format!("{name} is unknown: before the first section only retention is allowed");
            found.push((number, cause));
        } else if let Err(error) = Retention::from_str(value) {
            found.push((number, error.to_string()));
        }
    }
    found.extend(sections.iter().flat_map(|section| section.mistakes(schemas)));
    found.sort_by_key(|(number, _)| *number);
    found
}

impl MapSection<'_> {
    /// Compares its attributes with its schema.
    fn mistakes(&self, schemas: &[Arc<Schema>]) -> Vec<(usize, String)> {
        let Some(given) = self.lines.iter().rev().find(|line| line.name == "schema") else {
            return Vec::new();
        };
        let Some(schema) = schemas.iter().find(|schema| schema.name() == given.value) else {
            let known: Vec<&str> = schemas.iter().map(|schema| schema.name()).collect();
            let cause = format!("the pool has no schema {}; it has {}", given.value, known.join(", "));
            return vec![(given.number, cause)];
        };
        let is_unknown = |line: &&MapLine<'_>| line.name != "schema" && schema.find(line.name).is_none();
        let unknown = self.lines.iter().filter(is_unknown).filter(|_| !schema.is_open());
        unknown
            .map(|line| {
                (
                    line.number,
                    format!("the schema {} has no attribute {}", schema.name(), line.name),
                )
            })
            .collect()
    }
}

/// Returns the words in braces; one that does not end is returned with its brace.
fn words(value: &str) -> impl Iterator<Item = String> {
    value.split('{').skip(1).map(|rest| match rest.split_once('}') {
        Some((word, _)) => word.to_owned(),
        None => format!("{{{rest}"),
    })
}

/// Returns why a word in braces is invalid, as far as its form shows.
fn wrong_word(word: &str) -> Option<String> {
    if word.is_empty() || word.starts_with('{') {
        return Some("expected {WORD}".to_owned());
    }
    let (kind, rest) = word.split_once(':')?;
    match kind {
        "dim" => {
            let (name, factor) = rest
                .find(['/', '*'])
                .map_or((rest, "1"), |at| (&rest[..at], &rest[at + 1..]));
            let is_valid = !name.is_empty() && factor.parse::<f64>().is_ok_and(|factor| factor > 0.0);
            (!is_valid)
                .then(|| format!("{{{word}}}: expected {{dim:NAME}}, {{dim:NAME/NUMBER}} or {{dim:NAME*NUMBER}}"))
        }
        "lead" => {
            let is_valid = ["seconds", "minutes", "hours", "days"].contains(&rest);
            (!is_valid).then(|| format!("{{{word}}}: the unit is seconds, minutes, hours or days"))
        }
        "base" | "valid" => {
            (!rest.contains('%')).then(|| format!("{{{word}}}: expected a format of a date, such as {{base:%Y-%m-%d}}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let pool = Pool::embedded().unwrap();
        mistakes(text, &pool.schemas().unwrap())
    }

    #[test]
    fn a_map_that_can_be_used_has_no_mistakes() {
        let map = "# comment\nretention = released:2\n\n[t q*]\nrun = {global:RUN}-{name}\nany = {units}\n\
                   [ta]\nschema = mars\nparam = t\nlevelist = {dim:plev/100}\nstep = {lead:hours}\ndate = {base:%Y-%m-%d}\n";
        assert_eq!(found(map), []);
        assert_eq!(found(""), []);
    }

    #[test]
    fn each_line_that_cannot_be_used_is_named() {
        let map = "retention = whenever\nrun = 1\nnothing\n[]\n[t]\nempty =\nschema = marz\n[u]\nschema = mars\nnone = 1\n\
                   step = {lead:months}\ndate = {base:date}\nlevelist = {dim:plev/0}\nparam = {name\n";
        let causes = found(map);
        let lines: Vec<usize> = causes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 6, 7, 10, 11, 12, 13, 14]);
        assert!(
            causes[5].1.starts_with("the pool has no schema marz; it has "),
            "{}",
            causes[5].1
        );
        assert_eq!(causes[6].1, "the schema mars has no attribute none");
    }
}
