//! Cuts the text of a selector into words, quoted texts and signs, each with the byte where it begins.
//!
//! Reserved words are recognised here, in any case; a quoted text is never one. White space separates and means nothing.

use std::borrow::Cow;

use crate::error::{Code, Error, Result};
use crate::text::{is_bare_byte, is_reserved, unquote};

/// The longest text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A token of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectorToken {
    Word,
    Quoted,
    To,
    By,
    And,
    Or,
    Not,
    Exists,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Like,
    Slash,
    Comma,
    Open,
    Close,
    Star,
    End,
}

impl SelectorToken {
    /// How people write it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            SelectorToken::Word => "a word",
            SelectorToken::Quoted => "a quoted text",
            SelectorToken::To => "`to`",
            SelectorToken::By => "`by`",
            SelectorToken::And => "`and`",
            SelectorToken::Or => "`or`",
            SelectorToken::Not => "`not`",
            SelectorToken::Exists => "`exists`",
            SelectorToken::Equal => "`=`",
            SelectorToken::Unequal => "`!=`",
            SelectorToken::Less => "`<`",
            SelectorToken::AtMost => "`<=`",
            SelectorToken::Greater => "`>`",
            SelectorToken::AtLeast => "`>=`",
            SelectorToken::Like => "`~`",
            SelectorToken::Slash => "`/`",
            SelectorToken::Comma => "`,`",
            SelectorToken::Open => "`(`",
            SelectorToken::Close => "`)`",
            SelectorToken::Star => "`*`",
            SelectorToken::End => "the end",
        }
    }
}

/// A token, its decoded text (quotes and escapes resolved) and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextLexeme<'a> {
    pub(crate) token: SelectorToken,
    pub(crate) text: Cow<'a, str>,
    pub(crate) at: usize,
}

/// The whole text; the last lexeme is always [`SelectorToken::End`], where the last visible character ends.
pub(crate) fn lex(text: &str) -> Result<Vec<TextLexeme<'_>>> {
    if text.len() > TEXT_BYTES_MAX {
        let cause = format!("{} bytes of text, at most {TEXT_BYTES_MAX} are read", text.len());
        return Err(Error::new(Code::LimitExceeded, "selector", cause));
    }
    let text = text.trim_end_matches(is_space);
    let mut lexemes = Vec::with_capacity(text.len() / 4 + 1);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let skipped = rest.len() - rest.trim_start_matches(is_space).len();
        at += skipped;
        let (token, resolved, len) = next(&text[at..], at)?;
        lexemes.push(TextLexeme {
            token,
            text: resolved,
            at,
        });
        at += len;
    }
    lexemes.push(TextLexeme {
        token: SelectorToken::End,
        text: Cow::Borrowed(""),
        at,
    });
    Ok(lexemes)
}

/// Unicode's white space and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

/// The token at the beginning of `rest`, which is not empty.
fn next(rest: &str, at: usize) -> Result<(SelectorToken, Cow<'_, str>, usize)> {
    if rest.starts_with('"') {
        let (text, len) = unquote(rest).map_err(|error| invalid(at + error.at, error.why))?;
        return Ok((SelectorToken::Quoted, text, len));
    }
    let len = rest.bytes().take_while(|&byte| is_bare_byte(byte)).count();
    if len > 0 {
        let word = &rest[..len];
        return Ok((word_token(word), Cow::Borrowed(word), len));
    }
    let (token, len) = sign(rest.as_bytes()).ok_or_else(|| {
        let c = rest.chars().next().unwrap_or_default();
        let form = match c {
            '&' => "; conditions are joined by `,` or `and`",
            '|' => "; alternatives are joined by `or`",
            ';' => "; conditions are joined by `,`",
            '!' => "; a condition is negated by `not`, an equality by `!=`",
            '[' | '{' => "; a list is written name=a/b",
            _ => "",
        };
        let cause = format!("{c:?} is not allowed here; put a value with this character in double quotes{form}");
        invalid(at, cause.replace("'\\''", "\"'\""))
    })?;
    Ok((token, Cow::Borrowed(&rest[..len]), len))
}

fn sign(rest: &[u8]) -> Option<(SelectorToken, usize)> {
    let followed = rest.get(1) == Some(&b'=');
    Some(match (rest.first()?, followed) {
        (b'!', true) => (SelectorToken::Unequal, 2),
        (b'<', true) => (SelectorToken::AtMost, 2),
        (b'>', true) => (SelectorToken::AtLeast, 2),
        (b'=', _) => (SelectorToken::Equal, 1),
        (b'<', _) => (SelectorToken::Less, 1),
        (b'>', _) => (SelectorToken::Greater, 1),
        (b'~', _) => (SelectorToken::Like, 1),
        (b'/', _) => (SelectorToken::Slash, 1),
        (b',', _) => (SelectorToken::Comma, 1),
        (b'(', _) => (SelectorToken::Open, 1),
        (b')', _) => (SelectorToken::Close, 1),
        (b'*', _) => (SelectorToken::Star, 1),
        _ => return None,
    })
}

fn word_token(word: &str) -> SelectorToken {
    if !is_reserved(word) {
        return SelectorToken::Word;
    }
    match word.to_ascii_lowercase().as_str() {
        "to" => SelectorToken::To,
        "by" => SelectorToken::By,
        "and" => SelectorToken::And,
        "or" => SelectorToken::Or,
        "not" => SelectorToken::Not,
        _ => SelectorToken::Exists,
    }
}

/// An error about the text of a selector.
pub(crate) fn invalid(at: usize, cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidSelector, "selector", cause).at(at)
}
