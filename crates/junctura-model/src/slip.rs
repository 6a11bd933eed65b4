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

/// Letters to insert, remove, replace or swap with the next one to make one text the other, in any case.
fn edits(a: &str, b: &str) -> usize {
    let lower = |text: &str| text.chars().map(|c| c.to_ascii_lowercase()).collect::<Vec<char>>();
    let (a, b) = (lower(a), lower(b));
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (above, x) in a.iter().enumerate() {
        let mut row = vec![above + 1];
        for (left, y) in b.iter().enumerate() {
            let replaced = last[left] + usize::from(x != y);
            let mut fewest = replaced.min(last[left + 1] + 1).min(row[left] + 1);
            if above > 0 && left > 0 && a[above - 1] == *y && b[left - 1] == *x {
                fewest = fewest.min(before[left - 1] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
