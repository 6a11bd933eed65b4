//! Text stays easy to read: patterns per 1,000 words ([`crate::language`]) may only fall.

use crate::language::{TextKind, measure};
use crate::tree::Tree;

/// The most patterns per 1,000 words of each kind of text; where the text is better, the limit is lowered.
const LIMITS: [(TextKind, f64); 7] = [
    (TextKind::Pages, 0.86),
    (TextKind::Records, 2.9),
    (TextKind::Help, 0.4),
    (TextKind::RustDocs, 0.65),
    (TextKind::RustComments, 1.0),
    (TextKind::Python, 0.75),
    (TextKind::Messages, 0.86),
];

pub(super) fn patterns_are_rare(tree: &Tree) -> Vec<String> {
    let counts = measure(tree);
    LIMITS
        .iter()
        .filter_map(|(kind, limit)| Some((kind, limit, counts.get(kind)?.per_thousand())))
        .filter(|(_, limit, found)| found > limit)
        .map(|(kind, limit, found)| {
            format!("{kind:?}: {found:.2} patterns per 1,000 words, at most {limit}: cargo xtask language")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_full_of_patterns_is_found() {
        let tree = Tree::of(
            Vec::new(),
            &[
                ("README.md", "What goes is told.\n"),
                ("docs/guide/x.md", "It returns.\n"),
            ],
        );
        assert_eq!(patterns_are_rare(&tree).len(), 1);
        assert!(patterns_are_rare(&Tree::of(Vec::new(), &[("README.md", "It returns.\n")])).is_empty());
    }
}
