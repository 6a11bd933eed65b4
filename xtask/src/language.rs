//! Measures of language, printed by `cargo xtask language`: how often a text has the patterns that make it hard to read.
//!
//! A sentence that opens with "What", a program that "says" and "goes", a pronoun without an antecedent ("of it") and "nobody" for a
//! process have to be read twice. They are counted per 1,000 words of prose: of pages, of doc comments, of other comments, of Python's
//! docstrings and comments, and of messages. Code blocks and code spans do not count. `cargo xtask tidy` compares the counts with
//! [`crate::tidy`]'s limits.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::tree::Tree;

/// A pattern that a text should have rarely.
struct Pattern {
    name: &'static str,
    /// Words that begin a sentence, in small letters.
    opening: &'static [&'static str],
    /// Words anywhere.
    words: &'static [&'static str],
    /// Pairs of words.
    pairs: &'static [(&'static str, &'static str)],
    /// The greater count of `object_store` (978fb48) and `zarrs` (85b26a3), docs and Rust comments together.
    anchor: f64,
}

const NONE: Pattern = Pattern {
    name: "",
    opening: &[],
    words: &[],
    pairs: &[],
    anchor: 0.0,
};

const PATTERNS: [Pattern; 6] = [
    Pattern {
        name: "sentence opens with What",
        opening: &["what"],
        anchor: 0.03,
        ..NONE
    },
    Pattern {
        name: "who, whoever",
        words: &["who", "whoever", "whom"],
        anchor: 0.1,
        ..NONE
    },
    Pattern {
        name: "say, tell, hear, know, believe",
        words: &[
            "say", "says", "said", "tell", "tells", "told", "hear", "hears", "heard", "believe", "believes", "believed",
        ],
        anchor: 0.1,
        ..NONE
    },
    Pattern {
        name: "go, come, lie, stand",
        words: &[
            "go", "goes", "went", "gone", "come", "comes", "came", "lie", "lies", "lay", "stand", "stands", "stood",
        ],
        anchor: 0.1,
        ..NONE
    },
    Pattern {
        name: "nobody, somebody, anybody",
        words: &["nobody", "somebody", "anybody"],
        anchor: 0.0,
        ..NONE
    },
    Pattern {
        name: "of it, of that, of them, of those",
        pairs: &[("of", "it"), ("of", "that"), ("of", "them"), ("of", "those")],
        anchor: 0.1,
        ..NONE
    },
];

/// The kinds of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TextKind {
    /// README and ARCHITECTURE, the guide and the page of the command.
    Pages,
    /// Formats, decisions and benchmarks.
    Records,
    /// Doc comments of the command: its help.
    Help,
    /// Doc comments of other Rust sources.
    RustDocs,
    /// Other comments of Rust sources.
    RustComments,
    /// Docstrings and comments of Python.
    Python,
    /// Texts of errors and reports in Rust.
    Messages,
}

impl TextKind {
    const ALL: [(TextKind, &str); 7] = [
        (TextKind::Pages, "user pages"),
        (TextKind::Records, "formats, decisions"),
        (TextKind::Help, "help of the command"),
        (TextKind::RustDocs, "Rust doc comments"),
        (TextKind::RustComments, "Rust comments"),
        (TextKind::Python, "Python docstrings"),
        (TextKind::Messages, "messages in Rust"),
    ];
}

/// Words and patterns of one kind of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    words: usize,
    found: [usize; PATTERNS.len()],
}

impl Counts {
    /// All patterns per 1,000 words.
    pub(crate) fn per_thousand(&self) -> f64 {
        self.found.iter().sum::<usize>() as f64 * 1000.0 / self.words.max(1) as f64
    }

    /// Counts one paragraph; its first word opens a sentence.
    fn read(&mut self, paragraph: &str) {
        let mut opens = true;
        let mut before = String::new();
        for raw in paragraph.split_whitespace() {
            let word: String = raw
                .trim_matches(|letter: char| !letter.is_alphanumeric())
                .to_lowercase();
            let ends = raw
                .trim_end_matches(['"', '\'', ')', '*', '_'])
                .ends_with(['.', '!', '?', ':']);
            if word.chars().any(char::is_alphabetic) {
                self.words += 1;
                for (count, pattern) in self.found.iter_mut().zip(&PATTERNS) {
                    let is_found = (opens && pattern.opening.contains(&&*word))
                        || pattern.words.contains(&&*word)
                        || pattern.pairs.contains(&(&before, &word));
                    *count += usize::from(is_found);
                }
                opens = false;
            }
            opens |= ends;
            before = word;
        }
    }
}

/// The counts of each kind of text.
pub(crate) fn measure(tree: &Tree) -> BTreeMap<TextKind, Counts> {
    let mut counts: BTreeMap<TextKind, Counts> = BTreeMap::new();
    let mut add = |kind, paragraphs: Vec<String>| {
        let counts = counts.entry(kind).or_default();
        for paragraph in &paragraphs {
            counts.read(paragraph);
        }
    };
    for (path, text) in tree.texts(&[".md"]) {
        let kind = match path {
            "README.md" | "ARCHITECTURE.md" | "docs/cli.md" | "docs/index.md" => TextKind::Pages,
            _ if path.starts_with("docs/guide/") => TextKind::Pages,
            _ if path.starts_with("docs/") => TextKind::Records,
            _ => continue,
        };
        add(kind, paragraphs(text.lines()));
    }
    for (path, text) in tree.texts(&[".rs"]).filter(|(path, _)| is_of_product(path)) {
        let docs = if path.starts_with("crates/junctura-cli/") {
            TextKind::Help
        } else {
            TextKind::RustDocs
        };
        add(docs, paragraphs(comments(text, &["///", "//!"])));
        add(TextKind::RustComments, paragraphs(comments(text, &["//"])));
        add(TextKind::Messages, messages(text));
    }
    for (_, text) in tree
        .texts(&[".py", ".pyi"])
        .filter(|(path, _)| path.starts_with("python/"))
    {
        add(TextKind::Python, paragraphs(docstrings(text)));
    }
    counts
}

/// Whether a Rust source is part of a product: not of tests, the simulation or this tool.
fn is_of_product(path: &str) -> bool {
    let is_of_tests =
        path.contains("/tests/") || path.ends_with("tests.rs") || path.starts_with("crates/junctura-sim/");
    path.contains("/src/") && !path.starts_with("xtask/") && !is_of_tests
}

/// The text of lines that begin with one of these marks.
fn comments<'a>(text: &'a str, marks: &'a [&str]) -> impl Iterator<Item = &'a str> {
    text.lines().map(str::trim_start).map(move |line| {
        let of = |mark: &&str| {
            let rest = line.strip_prefix(*mark)?;
            // `//` does not match `///`.
            (!rest.starts_with(['/', '!'])).then_some(rest.strip_prefix(' ').unwrap_or(rest))
        };
        marks.iter().find_map(of).unwrap_or("")
    })
}

/// The lines of docstrings and comments.
fn docstrings(text: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    text.lines().map(str::trim).map(move |line| {
        let marks = line.matches("\"\"\"").count();
        let is_text = within || marks > 0;
        within ^= marks % 2 == 1;
        if is_text && !line.starts_with(">>>") && !line.starts_with("...") {
            line.trim_matches('"')
        } else {
            line.strip_prefix("# ").unwrap_or("")
        }
    })
}

/// Texts in code that are sentences: they have at least two spaces.
fn messages(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let quoted = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    quoted
        .filter(|text| text.matches(' ').count() >= 2)
        .map(without_placeholders)
        .collect()
}

/// A message without what is in braces: the name of a variable is no word of it.
fn without_placeholders(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default();
    let others = parts.map(|part| part.split_once('}').map_or("", |(_, behind)| behind));
    std::iter::once(first).chain(others).collect::<Vec<_>>().join("0")
}

/// Paragraphs, list items and table cells of Markdown, without code.
fn paragraphs<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in lines {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        let begins = line.is_empty() || line.starts_with(['#', '-', '*', '|', '>']);
        if begins {
            paragraphs.push(String::new());
        }
        // A code span is one word that is no pattern.
        let prose = line
            .split('`')
            .enumerate()
            .map(|(at, part)| if at % 2 == 0 { part } else { "0" });
        for (at, cell) in prose.collect::<String>().split('|').enumerate() {
            if at > 0 {
                paragraphs.push(String::new());
            }
            if let Some(paragraph) = paragraphs.last_mut() {
                paragraph.push_str(cell);
                paragraph.push(' ');
            }
        }
    }
    paragraphs
}

/// Prints the table.
pub(crate) fn run() -> ExitCode {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("language: cannot read the tree: {error}");
            return ExitCode::from(2);
        }
    };
    let counts = measure(&tree);
    print!("{:<36}{:>9}", "per 1,000 words", "anchors");
    let kinds: Vec<_> = TextKind::ALL
        .iter()
        .filter_map(|(kind, name)| Some((counts.get(kind)?, name)))
        .collect();
    for (_, name) in &kinds {
        print!("{name:>21}");
    }
    println!();
    for (at, pattern) in PATTERNS.iter().enumerate() {
        print!("{:<36}{:>9.2}", pattern.name, pattern.anchor);
        for (counts, _) in &kinds {
            print!(
                "{:>21.2}",
                counts.found[at] as f64 * 1000.0 / counts.words.max(1) as f64
            );
        }
        println!();
    }
    print!(
        "{:<36}{:>9.2}",
        "all",
        PATTERNS.iter().map(|pattern| pattern.anchor).sum::<f64>()
    );
    for (counts, _) in &kinds {
        print!("{:>21.2}", counts.per_thousand());
    }
    print!("\n{:<45}", "words");
    for (counts, _) in &kinds {
        print!("{:>21}", counts.words);
    }
    println!();
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paragraph: &str) -> [usize; PATTERNS.len()] {
        let mut counts = Counts::default();
        counts.read(paragraph);
        counts.found
    }

    #[test]
    fn patterns_are_found_in_prose() {
        assert_eq!(
            found("What lies there is told. Whoever comes takes some of it."),
            [1, 1, 1, 2, 0, 1]
        );
        assert_eq!(
            found("It returns what the server sends: nobody waits."),
            [0, 0, 0, 0, 1, 0]
        );
        assert_eq!(found("The server evicts objects."), [0; PATTERNS.len()]);
    }

    #[test]
    fn code_is_not_prose() {
        let text = "Text `said`.\n\n```\nWhat goes\n```\n- Item\n| cell | What |\n";
        assert_eq!(
            paragraphs(text.lines()).concat().split_whitespace().collect::<Vec<_>>(),
            ["Text", "0.", "-", "Item", "cell", "What"]
        );
        let rust = "/// Doc.\n//! Head.\n// Why.\nlet x = \"no such file here\"; // told\n";
        assert_eq!(comments(rust, &["///", "//!"]).collect::<String>(), "Doc.Head.");
        assert_eq!(comments(rust, &["//"]).collect::<String>(), "Why.");
        assert_eq!(messages(rust), ["no such file here"]);
        assert_eq!(messages("(\"{what} must be {one} value\")"), ["0 must be 0 value"]);
        let python = "x = 1  \n# Why.\n\"\"\"One.\n\n>>> said\n\"\"\"\ny\n";
        assert_eq!(docstrings(python).collect::<String>(), "Why.One.");
    }
}
