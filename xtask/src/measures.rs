//! Measures of structure, printed by `cargo xtask measures`: what the size of files and functions does not show.
//!
//! A type with hundreds of methods, a folder with dozens of files and a name that several types share make code hard to find,
//! although each file is short. The measures are taken from the text of product code, formatted by rustfmt: all Rust sources of
//! the crates, without tests and the simulation; folders of all sources but tests. `cargo xtask tidy` compares them with [`crate::tidy`]'s limits.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use crate::tree::Tree;

/// Crates that only judge others.
const JUDGES: [&str; 1] = ["crates/junctura-sim/"];
/// What a definition of a type begins with, after its visibility.
const TYPES: [&str; 4] = ["struct ", "enum ", "union ", "trait "];

/// Sources that a folder should have at most.
pub(crate) const FOLDER_FILES: usize = 15;

/// The measures of a tree.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    /// Lines of product code in Rust, without tests.
    pub(crate) lines: usize,
    /// How often each name of a type is defined.
    types: BTreeMap<String, usize>,
    /// Inherent methods by crate and type, and the files they are in.
    methods: BTreeMap<(String, String), (usize, BTreeSet<String>)>,
    /// Sources in each folder, except those of tests.
    folders: BTreeMap<String, usize>,
}

/// A type and its methods.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Largest {
    /// Its crate and name.
    pub(crate) name: String,
    pub(crate) methods: usize,
    pub(crate) files: usize,
}

impl Measures {
    /// Measures the product code of a tree.
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut measures = Self::default();
        for (path, _) in tree.texts(&[".rs", ".py"]).filter(|(path, _)| !is_test(path)) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            *measures.folders.entry(folder.to_owned()).or_default() += 1;
        }
        for (path, text) in tree.texts(&[".rs"]).filter(|(path, _)| is_product(path)) {
            measures.read(path, without_tests(text));
        }
        measures
    }

    fn read(&mut self, path: &str, text: &str) {
        let package = path.split('/').nth(1).unwrap_or_default();
        self.lines += text.lines().count();
        let mut within = None;
        for line in text.lines() {
            if let Some(name) = type_of(line) {
                *self.types.entry(name.to_owned()).or_default() += 1;
            }
            if line.starts_with("impl") {
                within = implemented(line);
            } else if line.starts_with('}') {
                within = None;
            } else if let Some(name) = within
                && is_method(line)
            {
                let (methods, files) = self.methods.entry((package.to_owned(), name.to_owned())).or_default();
                *methods += 1;
                files.insert(path.to_owned());
            }
        }
    }

    /// How many types there are.
    pub(crate) fn types(&self) -> usize {
        self.types.values().sum()
    }

    /// The percentage of types whose name is one word.
    pub(crate) fn one_word_percent(&self) -> usize {
        let is_one_word = |name: &str| name.chars().filter(char::is_ascii_uppercase).count() == 1;
        self.percent(|name, _| is_one_word(name))
    }

    /// The percentage of types whose name another type has, too.
    pub(crate) fn shared_percent(&self) -> usize {
        self.percent(|_, count| count > 1)
    }

    fn percent(&self, counts: impl Fn(&str, usize) -> bool) -> usize {
        let those = self.types.iter().filter(|&(name, &count)| counts(name, count));
        100 * those.map(|(_, count)| count).sum::<usize>() / self.types().max(1)
    }

    /// The types with the most inherent methods.
    pub(crate) fn largest(&self, count: usize) -> Vec<Largest> {
        let mut all: Vec<Largest> = (self.methods.iter())
            .map(|((package, name), (methods, files))| Largest {
                name: format!("{package} {name}"),
                methods: *methods,
                files: files.len(),
            })
            .collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.methods));
        all.truncate(count);
        all
    }

    /// The folders with more sources than this, the fullest first.
    pub(crate) fn folders_above(&self, limit: usize) -> Vec<(&str, usize)> {
        let above = self.folders.iter().filter(|&(_, &files)| files > limit);
        let mut above: Vec<(&str, usize)> = above.map(|(folder, &files)| (folder.as_str(), files)).collect();
        above.sort_by_key(|&(_, files)| std::cmp::Reverse(files));
        above
    }
}

/// Prints all measures.
pub(crate) fn run() -> ExitCode {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("measures: cannot read the tree: {error}");
            return ExitCode::from(2);
        }
    };
    let measures = Measures::of(&tree);
    println!("lines of product code in Rust: {}", measures.lines);
    println!("types: {}", measures.types());
    println!("one-word type names: {} %", measures.one_word_percent());
    println!("shared type names: {} %", measures.shared_percent());
    for one in measures.largest(10) {
        println!("{}: {} methods in {} files", one.name, one.methods, one.files);
    }
    for (folder, files) in measures.folders_above(FOLDER_FILES) {
        println!("{folder}: {files} files");
    }
    ExitCode::SUCCESS
}

fn is_product(path: &str) -> bool {
    let is_source = (path.starts_with("crates/") && path.contains("/src/")) || path.starts_with("python/junctura/");
    is_source && !is_test(path) && !JUDGES.iter().any(|folder| path.starts_with(folder))
}

/// Tests and benchmarks: their folders may have more files.
fn is_test(path: &str) -> bool {
    let has_own_folder = ["tests/", "benches/"].iter().any(|folder| path.starts_with(folder));
    has_own_folder || path.contains("/tests/") || path.ends_with("tests.rs") || path.ends_with("_test.rs")
}

/// A file up to its own tests, which are its last item.
fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {")
        .map_or(text, |end| &text[..end])
}

/// The name of the type that a line defines.
fn type_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let name = TYPES.iter().find_map(|keyword| rest.strip_prefix(keyword))?;
    first_word(name).filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// The type whose inherent methods a block has.
fn implemented(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find_map(|(at, letter)| {
            match letter {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at)
        })?;
        rest = &rest[end + 1..];
    }
    if rest.contains(" for ") {
        return None;
    }
    first_word(rest.trim_start())
}

fn is_method(line: &str) -> bool {
    let Some(line) = line.strip_prefix("    ").filter(|line| !line.starts_with(' ')) else {
        return false;
    };
    line.starts_with("fn ") || (!line.starts_with("//") && !line.starts_with('#') && line.contains(" fn "))
}

fn first_word(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let word = &text[..end.unwrap_or(text.len())];
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! Why.

pub(crate) struct Place<'a> {
    at: &'a str,
}

enum FieldState {
    There,
}

impl<'a, T: Into<Vec<u8>>> Place<'a> {
    /// Not one: fn this
    pub(crate) const fn at(&self) -> usize {
        fn inner() {}
        0
    }

    fn other(&self) {}
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self) {}
}

#[cfg(test)]
mod tests {
    struct Other;
}
";

    #[test]
    fn types_and_inherent_methods_are_counted_without_tests() {
        let tree = Tree::of(
            Vec::new(),
            &[
                ("crates/a/src/lib.rs", CODE),
                ("crates/b/src/lib.rs", "pub struct Place;\n"),
                ("crates/b/tests/x.rs", "struct Place;\n"),
                ("crates/junctura-sim/src/lib.rs", "struct Place;\n"),
            ],
        );
        let measures = Measures::of(&tree);
        assert_eq!(
            (measures.types(), measures.shared_percent(), measures.one_word_percent()),
            (3, 66, 66)
        );
        let largest = Largest {
            name: "a Place".to_owned(),
            methods: 2,
            files: 1,
        };
        assert_eq!(measures.largest(1), [largest]);
    }

    #[test]
    fn a_full_folder_is_found() {
        let paths: Vec<String> = (0..3).map(|number| format!("python/junctura/x/_{number}.py")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let tree = Tree::of(Vec::new(), &files);
        assert_eq!(Measures::of(&tree).folders_above(2), [("python/junctura/x", 3)]);
        assert!(Measures::of(&tree).folders_above(3).is_empty());
    }
}
