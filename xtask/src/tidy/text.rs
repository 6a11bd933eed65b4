//! Rules about the text of files.

use crate::tree::Tree;

const SOURCES: [&str; 10] = [".rs", ".py", ".pyi", ".sh", ".c", ".h", ".f90", ".ts", ".js", ".css"];
const LINES_MAX: usize = 800;

/// Folders that exist on one machine only, put together here so that this file does not name them.
const PRIVATE: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/tmp/no", "tes"),
];

pub(super) fn modules_have_docs(tree: &Tree) -> Vec<String> {
    tree.texts(&[".rs"])
        .filter(|(path, _)| path.contains("src/") && !path.ends_with("tests.rs"))
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| format!("{path}: does not begin with a module doc (`//!`)"))
        .collect()
}

pub(super) fn files_are_short(tree: &Tree) -> Vec<String> {
    tree.texts(&SOURCES)
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect()
}

pub(super) fn no_private_paths(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in tree.texts(&[""]) {
        for (number, line) in text.lines().enumerate() {
            if let Some(private) = PRIVATE.iter().find(|private| names_folder(line, private)) {
                wrong.push(format!("{path}:{}: names {private}", number + 1));
            }
        }
    }
    wrong
}

/// Whether the folder stands there by itself, and not inside a longer path such as `net/work/x`.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric() || "-_.~})".contains(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_path_is_told_from_a_part_of_another() {
        let folder = PRIVATE[0];
        assert!(names_folder(&format!("see {folder}x"), folder));
        assert!(names_folder(&format!("\"{folder}x\""), folder));
        assert!(!names_folder(&format!("https://example.org{folder}x"), folder));
        assert!(!names_folder(&format!("$OUT/frame{folder}x"), folder));
    }

    #[test]
    fn a_long_file_and_a_bare_module_are_found() {
        let long = "x\n".repeat(LINES_MAX + 1);
        let tree = Tree::of(Vec::new(), &[("a/src/lib.rs", &long), ("b/src/lib.rs", "//! Why.\n")]);
        assert_eq!(files_are_short(&tree), ["a/src/lib.rs: 801 lines"]);
        assert_eq!(modules_have_docs(&tree).len(), 1);
    }
}
