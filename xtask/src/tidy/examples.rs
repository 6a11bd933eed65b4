//! A rule about the reference of the façade: whoever opens the page of a type sees each of its functions used.
//!
//! Sources are formatted, so lines tell enough: which `impl` a function is in, and what stands above it. That examples run is
//! seen to by the doctests.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;

const FACADE: &str = "crates/junctura/src/";
const LIB: &str = "crates/junctura/src/lib.rs";
/// What the façade names of this crate is the façade's, too.
const MODEL: &str = "crates/junctura-model/src/";

/// What the pages of types say, and the functions that are on them.
#[derive(Default)]
struct Pages {
    /// The lines of all examples on the page of each type.
    examples: BTreeMap<String, String>,
    functions: Vec<Function>,
}

struct Function {
    owner: String,
    name: String,
    /// Where it stands.
    path: String,
    /// Types that its documentation sends the reader to.
    links: Vec<String>,
}

/// Every public function is used in an example on the page of its type, or on a page that its documentation links to.
pub(super) fn functions_are_shown(tree: &Tree) -> Vec<String> {
    let named = tree.text(LIB).map(names_of_model).unwrap_or_default();
    let mut pages = Pages::default();
    for (path, text) in tree.texts(&[".rs"]) {
        if path.starts_with(FACADE) {
            let prefix = if path.starts_with("crates/junctura/src/aio/") {
                "aio::"
            } else {
                ""
            };
            pages.read(path, text, |owner| Some(format!("{prefix}{owner}")));
        } else if path.starts_with(MODEL) {
            pages.read(path, text, |owner| named.contains(owner).then(|| owner.to_owned()));
        }
    }
    pages.not_shown()
}

/// Every name that the façade exports has an example on its page, or is used in another one.
pub(super) fn names_are_shown(tree: &Tree) -> Vec<String> {
    let mut with_example = BTreeSet::new();
    let mut used = BTreeSet::new();
    let sources = tree
        .texts(&[".rs"])
        .filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"));
    for (_, text) in sources {
        let mut doc = Vec::new();
        for line in text.lines() {
            let code = line.trim_start();
            if let Some(said) = code.strip_prefix("///").or_else(|| code.strip_prefix("//!")) {
                doc.push(said.trim());
            } else if !code.starts_with('#') {
                let example = examples(&doc);
                if let Some(name) = type_of(line).filter(|_| !example.is_empty()) {
                    with_example.insert(name);
                }
                let lines = example.lines().filter(|line| !line.contains("use "));
                used.extend(lines.flat_map(words).map(str::to_owned));
                doc.clear();
            }
        }
    }
    let names = tree.text(LIB).map(exported).unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !with_example.contains(name) && !used.contains(*name))
        .map(|name| format!("{LIB}: exports {name}, which is used in no example"))
        .collect()
}

/// The names of types and functions in `pub use …;`.
fn exported(lib: &str) -> BTreeSet<&str> {
    let uses = lib
        .split("\npub use ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next());
    uses.filter(|path| !path.contains(" as "))
        .flat_map(|path| {
            let names = path
                .split_once('{')
                .map_or_else(|| path.rsplit("::").next(), |(_, names)| Some(names));
            names.into_iter().flat_map(words)
        })
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// What `pub use junctura_model::…` names.
fn names_of_model(lib: &str) -> BTreeSet<String> {
    let lines = lib.lines().filter(|line| line.starts_with("pub use junctura_model::"));
    lines
        .flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric()))
        .filter(|word| word.starts_with(char::is_uppercase))
        .map(str::to_owned)
        .collect()
}

impl Pages {
    fn read(&mut self, path: &str, text: &str, page: impl Fn(&str) -> Option<String>) {
        let (mut owner, mut doc) = (None, Vec::new());
        for line in text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")) {
            let code = line.trim_start();
            if let Some(said) = code.strip_prefix("///") {
                doc.push(said.trim());
            } else if let Some(name) = type_of(line) {
                if let Some(page) = page(name) {
                    self.examples.entry(page).or_default().push_str(&examples(&doc));
                }
                doc.clear();
            } else if line.starts_with("impl") {
                owner = owner_of(line).and_then(&page);
                doc.clear();
            } else if let (Some(name), Some(owner)) = (function_of(code), &owner) {
                self.examples
                    .entry(owner.clone())
                    .or_default()
                    .push_str(&examples(&doc));
                self.functions.push(Function {
                    owner: owner.clone(),
                    name: name.to_owned(),
                    path: path.to_owned(),
                    links: links(&doc, owner),
                });
                doc.clear();
            } else if line == "}" {
                owner = None;
                doc.clear();
            } else if code.is_empty() {
                doc.clear();
            }
        }
    }

    fn not_shown(&self) -> Vec<String> {
        let shows = |page: &String, name: &str| {
            let examples = self.examples.get(page);
            examples.is_some_and(|examples| calls(examples, name))
        };
        self.functions
            .iter()
            .filter(|function| {
                let mut pages = function.links.iter().chain([&function.owner]);
                !pages.any(|page| shows(page, &function.name))
            })
            .map(|function| {
                let Function { owner, name, path, .. } = function;
                format!("{path}: {owner}::{name} is used in no example on the page of {owner}")
            })
            .collect()
    }
}

/// The type that a line begins to declare.
fn type_of(line: &str) -> Option<&str> {
    let rest = ["pub struct ", "pub enum ", "pub trait "]
        .iter()
        .find_map(|begin| line.strip_prefix(begin))?;
    word(rest)
}

/// The type whose own functions follow.
fn owner_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') {
        rest.split_once("> ")?.1
    } else {
        rest.trim_start()
    };
    (!line.contains(" for ")).then(|| word(rest)).flatten()
}

/// The public function that a line begins to declare.
fn function_of(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("pub ")?;
    let rest = rest.trim_start_matches("const ").trim_start_matches("async ");
    word(rest.strip_prefix("fn ")?)
}

fn word(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&text[..end.unwrap_or(text.len())]).filter(|word| !word.is_empty())
}

/// What stands in code blocks.
fn examples(doc: &[&str]) -> String {
    let mut within = false;
    let mut code = String::new();
    for line in doc {
        if line.starts_with("```") {
            within = !within;
        } else if within {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The types that a function's documentation links to; a task's pool stays among its own.
fn links(doc: &[&str], owner: &str) -> Vec<String> {
    let prefix = if owner.starts_with("aio::") { "aio::" } else { "" };
    let linked = doc.iter().flat_map(|line| line.split("[`").skip(1));
    let names = linked.filter_map(|link| word(link.trim_start_matches("crate::")));
    names.map(|name| format!("{prefix}{name}")).collect()
}

/// Whether code calls something of this name.
fn calls(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        before.is_some_and(|letter| matches!(letter, '.' | ':')) && matches!(after, Some('(' | ':' | ')'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: (&str, &str) = (
        "crates/junctura/src/lib.rs",
        "pub use junctura_model::{Advice, Error};\n",
    );

    fn missing(text: &str) -> usize {
        let tree = Tree::of(Vec::new(), &[LIB, ("crates/junctura/src/a.rs", text)]);
        functions_are_shown(&tree).len()
    }

    #[test]
    fn a_function_that_no_example_uses_is_found() {
        let shown = "/// ```\n/// a.one();\n/// ```\npub struct A;\nimpl A {\n    pub fn one(&self) {}\n}\n";
        assert_eq!(missing(shown), 0);
        assert_eq!(missing(&shown.replace("fn one", "fn two")), 1);
        assert_eq!(missing(&shown.replace("a.one()", "one")), 1, "a name alone is no use");
        assert_eq!(missing(&shown.replace("/// ```\n", "")), 1, "prose is no example");
        assert_eq!(missing(&shown.replace("pub fn", "pub(crate) fn")), 0);
        let own = "impl<'a> A<'a> {\n    /// ```\n    /// A::new();\n    /// ```\n    #[must_use]\n    pub async fn new() {}\n}\n";
        assert_eq!(missing(own), 0);
        assert_eq!(missing("impl<T> From<A> for T {\n    pub fn from() {}\n}\n"), 0);
    }

    #[test]
    fn a_page_that_is_linked_to_may_show_it() {
        let linked =
            "/// ```\n/// p.begin();\n/// ```\npub struct P;\nimpl A {\n    /// See [`P`].\n    pub fn begin() {}\n}\n";
        assert_eq!(missing(linked), 0);
        assert_eq!(missing(&linked.replace("[`P`]", "P")), 1);
    }

    #[test]
    fn an_exported_name_without_an_example_is_found() {
        let lib = "mod a;\npub use a::{One, Two};\npub use b as c;\npub use a::three;\n";
        let text = "/// ```\n/// use a::Two;\n/// three();\n/// ```\n#[derive(Debug)]\npub struct One;\n/// Two.\npub struct Two;\n";
        let found = names_are_shown(&Tree::of(
            Vec::new(),
            &[(super::LIB, lib), ("crates/junctura/src/a.rs", text)],
        ));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("exports Two"));
    }

    #[test]
    fn what_the_facade_takes_over_is_its_own() {
        let text = "impl Error {\n    pub fn at() {}\n}\nimpl Record {\n    pub fn at() {}\n}\n";
        let tree = Tree::of(Vec::new(), &[LIB, ("crates/junctura-model/src/a.rs", text)]);
        assert_eq!(functions_are_shown(&tree).len(), 1);
    }
}
