//! Rules about the pages: what is written down is found, and what is linked to is there.

use crate::tree::Tree;

const DECISIONS: &str = "docs/decisions/";

pub(super) fn decisions_are_listed(tree: &Tree) -> Vec<String> {
    let list = tree.text("docs/decisions/README.md").unwrap_or_default();
    tree.texts(&[".md"])
        .filter_map(|(path, _)| path.strip_prefix(DECISIONS))
        .filter(|name| *name != "README.md" && !list.contains(&format!("]({name})")))
        .map(|name| format!("{DECISIONS}{name}: is not listed in {DECISIONS}README.md"))
        .collect()
}

pub(super) fn links_lead_somewhere(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in tree.texts(&[".md"]) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(text) {
            if !tree.exists(format!("{folder}/{link}").trim_start_matches('/')) {
                wrong.push(format!("{path}: links to {link}, which is not there"));
            }
        }
    }
    wrong
}

/// The relative targets of Markdown links outside code, without their anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let outside_code = text.split("```").step_by(2);
    outside_code
        .flat_map(|prose| prose.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_that_nobody_lists_is_found() {
        let tree = Tree::of(
            Vec::new(),
            &[
                ("docs/decisions/README.md", "- [1](0001-a.md)"),
                ("docs/decisions/0001-a.md", ""),
                ("docs/decisions/0002-b.md", ""),
            ],
        );
        assert_eq!(decisions_are_listed(&tree).len(), 1);
    }

    #[test]
    fn links_are_read_outside_code_and_without_anchors() {
        let text = "[a](x.md#top) [b](https://example.org) [c](#here)\n```\n[d](not.md)\n```\n[e](y.md)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["x.md", "y.md"]);
    }
}
