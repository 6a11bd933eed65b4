//! Rules about crates: who may use whom, and what the pure ones must not touch.

use crate::tree::{Package, Tree};

/// The floors of the house, lowest first. A crate may use crates of lower floors only.
const FLOORS: [&[&str]; 11] = [
    &["junctura-model", "junctura-grib"],
    &["junctura-wire", "junctura-layout", "junctura-remap", "junctura-values"],
    &["junctura-memory", "junctura-copy"],
    &["junctura-transport", "junctura-store", "junctura-board"],
    &["junctura-pool", "junctura-link"],
    &["junctura", "junctura-sim", "junctura-fuzz"],
    &["junctura-terminal"],
    &["junctura-load"],
    &["junctura-cli"],
    &["junctura-python", "junctura-c"],
    &["xtask"],
];

const PURE: [&str; 7] = [
    "junctura-board",
    "junctura-model",
    "junctura-wire",
    "junctura-layout",
    "junctura-remap",
    "junctura-grib",
    "junctura-values",
];
const PURE_USES_NONE_OF: [&str; 12] = [
    "rustix",
    "libc",
    "nix",
    "tokio",
    "mio",
    "memmap2",
    "tempfile",
    "rand",
    "time",
    "chrono",
    "crossbeam",
    "tracing",
];
const PURE_NAMES_NONE_OF: [&str; 7] = ["fs", "thread", "time", "net", "process", "env", "os"];

pub(super) fn arrows_point_down(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in &tree.packages {
        let Some(above) = floor(&package.name) else {
            wrong.push(format!(
                "{}: has no floor yet; give it one in xtask/src/tidy/crates.rs",
                package.name
            ));
            continue;
        };
        for used in &package.uses {
            if floor(used).is_some_and(|below| below >= above) {
                wrong.push(format!("{} uses {used}, which is not below it", package.name));
            }
        }
        if package.name == "junctura-grib" && package.uses.iter().any(|used| floor(used).is_some()) {
            wrong.push("junctura-grib knows GRIB and nothing of ours".to_owned());
        }
    }
    wrong
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

pub(super) fn pure_crates_are_pure(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in tree
        .packages
        .iter()
        .filter(|package| PURE.contains(&package.name.as_str()))
    {
        for used in package
            .uses
            .iter()
            .filter(|used| PURE_USES_NONE_OF.contains(&used.as_str()))
        {
            wrong.push(format!("{} uses {used}", package.name));
        }
        for (path, text) in sources(tree, package) {
            for name in names_of_std(product_code(text)).filter(|name| PURE_NAMES_NONE_OF.contains(name)) {
                wrong.push(format!("{path}: uses std::{name}"));
            }
        }
    }
    wrong
}

fn sources<'a>(tree: &'a Tree, package: &Package) -> impl Iterator<Item = (&'a str, &'a str)> {
    let folder = format!("{}/src/", package.folder);
    tree.texts(&[".rs"])
        .filter(move |(path, _)| path.starts_with(&folder) && !path.ends_with("tests.rs"))
}

/// What comes before the tests of a module, without comments.
fn product_code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .filter(|line| !line.trim().starts_with("//"))
}

/// The modules of the standard library that code names, as `std::fs` or within `use std::{…}`.
fn names_of_std<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let mut in_group = false;
    lines.flat_map(move |line| {
        let mut names: Vec<&str> = line.split("std::").skip(1).filter_map(first_word).collect();
        in_group |= line.starts_with("use std::{");
        if in_group {
            let group = line.trim_start_matches("use std::{");
            names.extend(group.split([',', '{']).filter_map(first_word));
            in_group = !line.ends_with("};");
        }
        names
    })
}

fn first_word(text: &str) -> Option<&str> {
    text.trim()
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
        .filter(|word| !word.is_empty())
}

/// A crate's own `clippy.toml` hides the root's, so it has to repeat every line of it.
pub(super) fn lints_are_kept(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    let root = tree.text("clippy.toml").unwrap_or_default();
    for package in &tree.packages {
        let manifest = tree.text(&format!("{}/Cargo.toml", package.folder)).unwrap_or_default();
        if !manifest.contains("[lints]\nworkspace = true") {
            wrong.push(format!(
                "{}/Cargo.toml: lacks `[lints] workspace = true`",
                package.folder
            ));
        }
        let own = format!("{}/clippy.toml", package.folder);
        let Some(text) = tree.text(&own) else {
            if PURE.contains(&package.name.as_str()) {
                wrong.push(format!(
                    "{own}: is missing; a pure crate bans the clock, threads and files there"
                ));
            }
            continue;
        };
        let lost = root
            .lines()
            .filter(|line| !line.starts_with('#') && !text.lines().any(|ours| ours == *line));
        wrong.extend(lost.map(|line| format!("{own}: lacks the root's line `{line}`")));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: name.into(),
            folder: name.into(),
            uses: uses.iter().map(|name| (*name).into()).collect(),
        }
    }

    #[test]
    fn an_arrow_up_or_sideways_is_found() {
        let of = |packages| arrows_point_down(&Tree::of(packages, &[]));
        assert!(of(vec![package("junctura-pool", &["junctura-wire", "rustix"])]).is_empty());
        assert_eq!(of(vec![package("junctura-wire", &["junctura-pool"])]).len(), 1);
        assert_eq!(of(vec![package("junctura-cli", &["junctura-python"])]).len(), 1);
        assert_eq!(of(vec![package("junctura-attic", &[])]).len(), 1);
    }

    #[test]
    fn a_clock_or_a_file_in_a_pure_crate_is_found_wherever_it_stands() {
        let names = |text: &'static str| names_of_std(product_code(text)).collect::<Vec<_>>();
        assert_eq!(names("let x = std::fs::read(a);"), ["fs"]);
        assert!(names("use std::{\n    fmt,\n    time::Instant,\n};").contains(&"time"));
        assert!(names("use std::{fmt, fs};\nlet fs = 1;").contains(&"fs"));
        assert!(names("// std::fs\n#[cfg(test)]\nmod tests {\n    use std::fs;").is_empty());
        assert_eq!(names("use core::time::Duration;"), Vec::<&str>::new());
    }
}
