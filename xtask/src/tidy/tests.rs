//! A rule about integration tests: a crate has few programs of them, and each file is part of one.

use crate::tree::Tree;

/// Where `autotests` is off, a file of tests that nothing names would silently not run.
pub(super) fn files_are_named(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in &tree.packages {
        let manifest = tree.text(&format!("{}/Cargo.toml", package.folder)).unwrap_or_default();
        if !manifest.contains("autotests = false") {
            continue;
        }
        let folder = format!("{}/tests/", package.folder);
        let main = tree.text(&format!("{folder}main.rs")).unwrap_or_default();
        for (path, _) in tree.texts(&[".rs"]) {
            let Some(file) = path.strip_prefix(&folder).filter(|file| !file.contains('/')) else {
                continue;
            };
            let module = format!("mod {};", file.trim_end_matches(".rs"));
            let is_named = file == "main.rs"
                || main.lines().any(|line| line.trim() == module)
                || manifest.contains(&format!("\"tests/{file}\""));
            if !is_named {
                wrong.push(format!("{path} is in no program of tests: name it in tests/main.rs"));
            }
        }
    }
    wrong
}
