//! Cuts the text of a selector into words, quoted texts and signs, each with the byte where it begins.
//!
//! Reserved words are recognised here, in any case; a quoted text is never one. White space separates and means nothing.

use std::borrow::Cow;

use crate::error::{Code, Error, Result};
use crate::text::{is_bare_byte, is_reserved, unquote};

/// The longest text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What stands somewhere in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
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

impl Token {
    /// How people write it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Token::Word => "a word",
            Token::Quoted => "a quoted text",
            Token::To => "`to`",
            Token::By => "`by`",
            Token::And => "`and`",
            Token::Or => "`or`",
            Token::Not => "`not`",
            Token::Exists => "`exists`",
            Token::Equal => "`=`",
            Token::Unequal => "`!=`",
            Token::Less => "`<`",
            Token::AtMost => "`<=`",
            Token::Greater => "`>`",
            Token::AtLeast => "`>=`",
            Token::Like => "`~`",
            Token::Slash => "`/`",
            Token::Comma => "`,`",
            Token::Open => "`(`",
            Token::Close => "`)`",
            Token::Star => "`*`",
            Token::End => "the end",
        }
    }
}

/// A token, the text it stands for (quotes and escapes resolved) and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme<'a> {
    pub(crate) token: Token,
    pub(crate) text: Cow<'a, str>,
    pub(crate) at: usize,
}

/// The whole text; the last lexeme is always [`Token::End`], where the last visible character ends.
pub(crate) fn lex(text: &str) -> Result<Vec<Lexeme<'_>>> {
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
        lexemes.push(Lexeme {
            token,
            text: resolved,
            at,
        });
        at += len;
    }
    lexemes.push(Lexeme {
        token: Token::End,
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
fn next(rest: &str, at: usize) -> Result<(Token, Cow<'_, str>, usize)> {
    if rest.starts_with('"') {
        let (text, len) = unquote(rest).map_err(|error| invalid(at + error.at, error.why))?;
        return Ok((Token::Quoted, text, len));
    }
    let len = rest.bytes().take_while(|&byte| is_bare_byte(byte)).count();
    if len > 0 {
        let word = &rest[..len];
        return Ok((word_token(word), Cow::Borrowed(word), len));
    }
    let (token, len) = sign(rest.as_bytes()).ok_or_else(|| {
        let c = rest.chars().next().unwrap_or_default();
        invalid(
            at,
            format!("{c:?} means nothing here; a value with such a character stands in double quotes"),
        )
    })?;
    Ok((token, Cow::Borrowed(&rest[..len]), len))
}

fn sign(rest: &[u8]) -> Option<(Token, usize)> {
    let followed = rest.get(1) == Some(&b'=');
    Some(match (rest.first()?, followed) {
        (b'!', true) => (Token::Unequal, 2),
        (b'<', true) => (Token::AtMost, 2),
        (b'>', true) => (Token::AtLeast, 2),
        (b'=', _) => (Token::Equal, 1),
        (b'<', _) => (Token::Less, 1),
        (b'>', _) => (Token::Greater, 1),
        (b'~', _) => (Token::Like, 1),
        (b'/', _) => (Token::Slash, 1),
        (b',', _) => (Token::Comma, 1),
        (b'(', _) => (Token::Open, 1),
        (b')', _) => (Token::Close, 1),
        (b'*', _) => (Token::Star, 1),
        _ => return None,
    })
}

fn word_token(word: &str) -> Token {
    if !is_reserved(word) {
        return Token::Word;
    }
    match word.to_ascii_lowercase().as_str() {
        "to" => Token::To,
        "by" => Token::By,
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        _ => Token::Exists,
    }
}

/// An error about the text of a selector.
pub(crate) fn invalid(at: usize, cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidSelector, "selector", cause).at(at)
}
