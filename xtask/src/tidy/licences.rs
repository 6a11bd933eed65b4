//! The rule about licences: what a build pulls in is allowed by `deny.toml`.
//!
//! `cargo deny` says the same and more, but takes minutes to install; this reads the same list.

use crate::tree::Tree;

pub(super) fn are_allowed(tree: &Tree) -> Vec<String> {
    let allowed = allowed(tree.text("deny.toml").unwrap_or_default());
    tree.licences
        .iter()
        .filter(|(_, licence)| !permits(licence, &allowed))
        .map(|(name, licence)| {
            format!(
                "{name}: {}",
                if licence.is_empty() {
                    "names no licence"
                } else {
                    licence
                }
            )
        })
        .collect()
}

fn allowed(deny: &str) -> Vec<&str> {
    let list = deny
        .split("allow = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next())
        .unwrap_or_default();
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether a licence expression (`A OR B`, `A AND (B OR C)`, the old `A/B`) can be met with what is allowed.
fn permits(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace(" WITH ", "+");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = all_of(rest, allowed);
    while take(rest, "OR") {
        met |= all_of(rest, allowed);
    }
    met
}

fn all_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = one(rest, allowed);
    while take(rest, "AND") {
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    if take(rest, "(") {
        return any_of(rest, allowed) & take(rest, ")");
    }
    let Some((word, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    let plain = word.split('+').next().unwrap_or_default();
    allowed.contains(&plain)
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_by_the_list() {
        let allowed = allowed("x\nallow = [\n  \"MIT\",\n  \"Apache-2.0\", \"Unicode-3.0\",\n]\n");
        assert_eq!(allowed, ["MIT", "Apache-2.0", "Unicode-3.0"]);
        for good in [
            "MIT",
            "MIT/GPL-2.0",
            "GPL-2.0 OR MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
        ] {
            assert!(permits(good, &allowed), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(GPL-2.0 OR GPL-3.0) AND MIT",
            "MIT AND",
        ] {
            assert!(!permits(bad, &allowed), "{bad}");
        }
        assert!(permits("Apache-2.0 WITH LLVM-exception OR GPL-2.0", &allowed));
    }
}
