//! Names that a misspelled one may have meant.

use crate::limits::NAME_BYTES_MAX;

/// Returns the name with the fewest edits from `unknown`, if there are few enough to call it a slip: at most a third of its
/// letters, and three; of names with as few edits, the first in the order of the alphabet.
///
/// ```
/// assert_eq!(junctura_model::nearest(["param", "step"], "parm"), Some("param"));
/// assert_eq!(junctura_model::nearest(["param", "step"], "levelist"), None);
/// ```
pub fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, unknown: &str) -> Option<&'a str> {
    if unknown.len() > NAME_BYTES_MAX {
        return None;
    }
    let edits_max = (unknown.chars().count() / 3).clamp(1, 3);
    let near = names.into_iter().map(|name| (edits(name, unknown), name));
    near.filter(|&(edits, name)| edits <= edits_max && edits < name.len())
        .min()
        .map(|(_, name)| name)
}

/// Letters to insert, remove or exchange to make one text the other, in any case.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, x) in a.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (left, &y) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(x.to_ascii_lowercase() != y);
            diagonal = row[left + 1];
            row[left + 1] = exchanged.min(diagonal + 1).min(row[left] + 1);
        }
    }
    row[b.len()]
}
