//! Folds the names of clients into components: the members of an ensemble are one.

/// A run of so many hexadecimal digits is a number, not a word.
const HEX_RUN: usize = 8;

/// Returns the component that a client of this name belongs to: each run of digits, and each run of at least eight hexadecimal
/// digits that is not a part of a word, becomes `*`.
///
/// ```
/// # use junctura_board::folded_name;
/// assert_eq!(folded_name("member-17"), "member-*");
/// assert_eq!(folded_name("post/3f2504e0a9"), "post/*");
/// assert_eq!(folded_name("decoder"), "decoder");
/// ```
#[must_use]
pub fn folded_name(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let word = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        if word == 0 {
            folded.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(word);
        fold_word(word, &mut folded);
        rest = after;
    }
    folded
}

/// Returns the group of a component: the part before its first `/`.
#[must_use]
pub fn component_group(name: &str) -> Option<&str> {
    name.split_once('/').map(|(group, _)| group)
}

fn fold_word(word: &str, folded: &mut String) {
    if word.len() >= HEX_RUN && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        folded.push('*');
        return;
    }
    let mut in_number = false;
    for letter in word.chars() {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            folded.push(letter);
        } else if !in_number {
            folded.push('*');
        }
        in_number = is_digit;
    }
}
