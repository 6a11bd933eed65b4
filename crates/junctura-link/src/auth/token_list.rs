//! The list of the valid tokens of a pool: a file beside the key.
//!
//! ```text
//! junctura-tokens-1
//! 1a2b3c4d read,offer 1795305600 1797897600 viewer
//! ```
//! The first line is the version of the format; each further line has a token's id, rights, first second, end (both since the
//! Unix epoch) and name. The list has no secrets. A token that it lacks is refused, so that a lost list admits no client.
//!
//! Each claim has exactly one line. `token_file` reads and replaces the file.

use std::fmt::Write as _;

use junctura_model::{Code, Error, Result};

use crate::auth::token::{TokenClaims, is_name};

const HEAD: &str = "junctura-tokens-1";

/// Reads the text of a list.
///
/// # Errors
/// `Corrupt`, with the number of the line.
pub(crate) fn parse(text: &str) -> Result<Vec<TokenClaims>> {
    let wrong = |line: usize| {
        Error::new(
            Code::Corrupt,
            "list of tokens",
            format!("line {line} is not of a list of tokens"),
        )
    };
    let mut lines = text.split_terminator('\n');
    if lines.next() != Some(HEAD) || !text.ends_with('\n') {
        return Err(wrong(1));
    }
    (2..)
        .zip(lines)
        .map(|(number, line)| read_line(line).ok_or_else(|| wrong(number)))
        .collect()
}

/// Returns the text of a list.
pub(crate) fn to_text(tokens: &[TokenClaims]) -> String {
    let mut text = format!("{HEAD}\n");
    for token in tokens {
        write_line(token, &mut text);
        text.push('\n');
    }
    text
}

fn read_line(line: &str) -> Option<TokenClaims> {
    let mut words = line.splitn(5, ' ');
    let token = TokenClaims {
        id: u32::from_str_radix(words.next()?, 16).ok()?,
        rights: words.next()?.parse().ok()?,
        from: words.next()?.parse().ok()?,
        until: words.next()?.parse().ok()?,
        name: words.next().filter(|name| is_name(name))?.to_owned(),
    };
    let mut own = String::with_capacity(line.len());
    write_line(&token, &mut own);
    (own == line).then_some(token)
}

fn write_line(token: &TokenClaims, text: &mut String) {
    let TokenClaims {
        id,
        rights,
        from,
        until,
        name,
    } = token;
    let written = write!(text, "{id:08x} {rights} {from} {until} {name}");
    debug_assert!(written.is_ok(), "a text takes everything");
}

#[cfg(test)]
mod tests {
    use junctura_wire::rights::AccessRights;
    use proptest::prelude::*;

    use super::*;

    fn token(id: u32, name: &str) -> TokenClaims {
        TokenClaims {
            id,
            rights: AccessRights::READ,
            from: 5,
            until: 10,
            name: name.to_owned(),
        }
    }

    fn tokens() -> impl Strategy<Value = Vec<TokenClaims>> {
        let rights = prop::sample::select(vec![1_u8, 2, 3, 7]);
        let token = (any::<u32>(), rights, any::<[u64; 2]>(), "[^\\p{Cc}]{0,40}");
        let token = token.prop_map(|(id, rights, [from, until], name)| TokenClaims {
            id,
            rights: AccessRights::from_bits(rights).unwrap(),
            from,
            until,
            name,
        });
        prop::collection::vec(token, 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lists_are_read_as_they_were_written(tokens in tokens()) {
            prop_assert_eq!(parse(&to_text(&tokens)).unwrap(), tokens);
        }

        #[test]
        fn a_changed_list_is_refused_or_has_one_text(tokens in tokens(), at in any::<prop::sample::Index>(), byte in 0_u8..128) {
            let mut bytes = to_text(&tokens).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(text) = String::from_utf8(bytes) && let Ok(read) = parse(&text) {
                prop_assert_eq!(to_text(&read), text);
            }
        }
    }

    #[test]
    fn other_texts_are_no_lists() {
        let good = to_text(&[token(0x1a2b_3c4d, "a viewer"), token(2, "")]);
        assert_eq!(
            good,
            "junctura-tokens-1\n1a2b3c4d read 5 10 a viewer\n00000002 read 5 10 \n"
        );
        assert!(parse(&good).is_ok());
        let bad = [
            ("", 1),
            ("junctura-tokens-2\n", 1),
            ("junctura-tokens-1", 1),
            ("junctura-tokens-1\n00000002 read 5 10\n", 2),
            (
                "junctura-tokens-1\n00000001 read 5 10 a\n00000002 offer,read 5 10 b\n",
                3,
            ),
            ("junctura-tokens-1\n2 read 5 10 a\n", 2),
            ("junctura-tokens-1\n00000002 admin 5 10 a\n", 2),
            ("junctura-tokens-1\n00000002 read 05 10 a\n", 2),
            ("junctura-tokens-1\n\n", 2),
        ];
        for (text, line) in bad {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), Code::Corrupt, "{text:?}");
            assert!(error.cause().contains(&format!("line {line} ")), "{error}");
        }
    }
}
