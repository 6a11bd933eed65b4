//! The rules, and the report over them.

use std::process::ExitCode;

use crate::tree::Tree;

mod crates;
mod docs;
mod examples;
mod language;
mod licences;
mod structure;
mod tests;
mod text;

/// A rule answers with what is wrong, a line each.
type Rule = fn(&Tree) -> Vec<String>;

const RULES: [(&str, Rule); 16] = [
    ("arrows between crates point down", crates::arrows_point_down),
    (
        "pure crates have no I/O, clock or threads",
        crates::pure_crates_are_pure,
    ),
    ("crates keep the house's lints", crates::lints_are_kept),
    ("every module says why it exists", text::modules_have_docs),
    ("no source file is longer than 800 lines", text::files_are_short),
    ("types have few methods", structure::types_are_small),
    ("folders have few files", structure::folders_are_small),
    ("names of types identify them", structure::names_identify),
    ("patterns that are hard to read are rare", language::patterns_are_rare),
    ("no file names a path of somebody's machine", text::no_private_paths),
    ("every decision is listed", docs::decisions_are_listed),
    ("links between pages lead somewhere", docs::links_lead_somewhere),
    (
        "every function of the facade is used in an example on its page",
        examples::functions_are_shown,
    ),
    (
        "every name that the facade exports is used in an example",
        examples::names_are_shown,
    ),
    ("licences are allowed by deny.toml", licences::are_allowed),
    (
        "every file of integration tests is in a program",
        tests::files_are_named,
    ),
];

/// Checks every rule, prints what is wrong and how many rules hold.
pub(crate) fn run() -> ExitCode {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: cannot read the tree: {error}");
            return ExitCode::from(2);
        }
    };
    let mut failed = 0;
    for (promise, rule) in RULES {
        let wrong = rule(&tree);
        println!("tidy: {} {promise}", if wrong.is_empty() { "ok    " } else { "BROKEN" });
        for line in &wrong {
            println!("    {line}");
        }
        failed += usize::from(!wrong.is_empty());
    }
    println!("tidy: {} passed, {failed} failed", RULES.len() - failed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
