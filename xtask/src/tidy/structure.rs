//! Limits of the [measures](crate::measures): how many methods a type has, how many files a folder, and how many types share a name.
//!
//! The percentages may only fall: lower them when the measures do.

use crate::measures::{FOLDER_FILES, Measures};
use crate::tree::Tree;

/// Inherent methods that a type may have.
const METHODS: usize = 80;
/// Types whose name is one word, in percent.
const ONE_WORD_PERCENT: usize = 7;
/// Types whose name another type has, too, in percent.
const SHARED_PERCENT: usize = 2;

pub(super) fn types_are_small(tree: &Tree) -> Vec<String> {
    let largest = Measures::of(tree).largest(usize::MAX);
    let above = largest.iter().filter(|one| one.methods > METHODS);
    above
        .map(|one| {
            format!(
                "{}: {} methods in {} files; move some to types of their own",
                one.name, one.methods, one.files
            )
        })
        .collect()
}

pub(super) fn folders_are_small(tree: &Tree) -> Vec<String> {
    let measures = Measures::of(tree);
    let full = measures.folders_above(FOLDER_FILES);
    full.into_iter()
        .map(|(folder, files)| format!("{folder}: {files} files; put those that belong together into a folder"))
        .collect()
}

pub(super) fn names_identify(tree: &Tree) -> Vec<String> {
    let measures = Measures::of(tree);
    let above = |percent: usize, limit: usize, what: &str| {
        (percent > limit)
            .then(|| format!("{percent} % of types {what}, at most {limit} % may; name new types by two words"))
    };
    let one_word = above(measures.one_word_percent(), ONE_WORD_PERCENT, "have a name of one word");
    let shared = above(
        measures.shared_percent(),
        SHARED_PERCENT,
        "share their name with another",
    );
    one_word.into_iter().chain(shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_beyond_its_limit_is_named() {
        let methods = "    fn a(&self) {}\n".repeat(METHODS + 1);
        let large = format!("//! Why.\npub struct Large;\nimpl Large {{\n{methods}}}\n");
        let mut files: Vec<(String, &str)> = (0..=FOLDER_FILES)
            .map(|number| (format!("crates/a/src/{number}.rs"), "pub struct Other;\n"))
            .collect();
        files.push(("crates/b/src/lib.rs".to_owned(), &large));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tree = Tree::of(Vec::new(), &files);
        assert_eq!(types_are_small(&tree).len(), 1);
        assert_eq!(folders_are_small(&tree).len(), 1);
        assert_eq!(names_identify(&tree).len(), 2);
        let small = Tree::of(Vec::new(), &files[..1]);
        assert!(types_are_small(&small).is_empty() && folders_are_small(&small).is_empty());
    }
}
