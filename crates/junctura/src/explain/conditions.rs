//! The conditions of a selector: its parts between commas that are in no parentheses and no quotes.

/// Conditions that are left out one at a time.
pub(super) const CONDITIONS_MAX: usize = 32;

/// Returns the conditions of a selector, of many the first.
pub(super) fn conditions(selector: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted, mut is_escaped, mut start) = (0_usize, false, false, 0);
    let mut found = Vec::new();
    for (at, c) in selector.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(selector[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(selector[start..].trim());
    found.retain(|condition| !condition.is_empty());
    found.truncate(CONDITIONS_MAX);
    found
}

/// Returns the attribute and the value of `NAME=VALUE`; without a value for other tests of one attribute.
pub(super) fn parts(condition: &str) -> Option<(&str, Option<&str>)> {
    let end = condition.find(['=', '!', '<', '>', '~', '(', ' ', '"'])?;
    let (name, test) = condition.split_at(end);
    let test = test.trim_start();
    let is_test = ['=', '!', '<', '>', '~'].iter().any(|&sign| test.starts_with(sign));
    if name.is_empty() || !is_test || test.contains(" or ") || test.contains(" and ") {
        return None;
    }
    let value = test.strip_prefix('=').map(str::trim);
    let plain = value.filter(|value| !value.contains(['/', '*', '"']) && !value.is_empty());
    Some((name, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_quotes_and_parentheses_part_nothing() {
        assert_eq!(conditions("a=1,b=2"), ["a=1", "b=2"]);
        assert_eq!(
            conditions(" a=\"x,\\\",y\" , (b=1,c=2) or d=3"),
            ["a=\"x,\\\",y\"", "(b=1,c=2) or d=3"]
        );
        assert_eq!(conditions(""), [""; 0]);
        let many = vec!["a=1"; 40].join(",");
        assert_eq!(conditions(&many).len(), CONDITIONS_MAX);
    }

    #[test]
    fn a_condition_has_an_attribute_and_perhaps_a_value() {
        assert_eq!(parts("levelist=85"), Some(("levelist", Some("85"))));
        assert_eq!(parts("step=0/to/24"), Some(("step", None)));
        assert_eq!(parts("levelist>=500"), Some(("levelist", None)));
        assert_eq!(parts("a=1 or b=2"), None);
        assert_eq!(parts("exists(number)"), None);
        assert_eq!(parts("(a=1)"), None);
        assert_eq!(parts("not a=1"), None);
    }
}
