//! Parses the grammar of selectors into an untyped syntax tree.
//!
//! A text is parsed once and then typed by each schema of a pool. Nesting is counted, so no text can exhaust the stack,
//! and every error has the position of the unexpected lexeme and the expected input.

use std::borrow::Cow;

use super::lexer::{SelectorToken, TextLexeme, invalid, lex};
use crate::error::{Code, Error, Result};
use crate::schema::Schema;

/// How deep parentheses and `not` may nest.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of items in all lists of a selector.
pub const ITEMS_MAX: usize = 10_000;

/// A selector as it is written.
#[derive(Clone, Debug)]
pub(crate) enum SelectorSyntax<'a> {
    Everything,
    All(Vec<SelectorSyntax<'a>>),
    Any(Vec<SelectorSyntax<'a>>),
    Not(Box<SelectorSyntax<'a>>),
    Test { name: SyntaxItem<'a>, ask: SyntaxTest<'a> },
}

impl SelectorSyntax<'_> {
    /// Returns the number of tests of attributes that a schema declares.
    pub(crate) fn count_declared(&self, schema: &Schema) -> usize {
        match self {
            Self::Everything => 0,
            Self::All(parts) | Self::Any(parts) => parts.iter().map(|part| part.count_declared(schema)).sum(),
            Self::Not(part) => part.count_declared(schema),
            Self::Test { name, .. } => usize::from(schema.find(&name.text).is_some()),
        }
    }
}

/// A test of one attribute.
#[derive(Clone, Debug)]
pub(crate) enum SyntaxTest<'a> {
    Exists,
    Among {
        negated: bool,
        items: Vec<SyntaxItem<'a>>,
    },
    Range {
        negated: bool,
        first: SyntaxItem<'a>,
        last: SyntaxItem<'a>,
        by: Option<SyntaxItem<'a>>,
    },
    Compare {
        op: SelectorToken,
        op_at: usize,
        bound: SyntaxItem<'a>,
    },
    Like(SyntaxItem<'a>),
}

/// A name or a value, and its position.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxItem<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) at: usize,
}

/// Reads a selector.
pub(crate) fn parse(text: &str) -> Result<SelectorSyntax<'_>> {
    let mut parser = SelectorParser::new(lex(text)?);
    if parser.peek() == SelectorToken::End || parser.is_lone_star() {
        return Ok(SelectorSyntax::Everything);
    }
    let syntax = parser.selector()?;
    parser.take(&[SelectorToken::End], "`,`, `and`, `or` or the end")?;
    Ok(syntax)
}

pub(crate) struct SelectorParser<'a> {
    lexemes: Vec<TextLexeme<'a>>,
    next: usize,
    depth: usize,
    items: usize,
}

const VALUE: &[SelectorToken] = &[SelectorToken::Word, SelectorToken::Quoted];
const OPERATORS: &[SelectorToken] = &[
    SelectorToken::Equal,
    SelectorToken::Unequal,
    SelectorToken::Less,
    SelectorToken::AtMost,
    SelectorToken::Greater,
    SelectorToken::AtLeast,
    SelectorToken::Like,
];

/// The right form of what is written as in another language; else empty.
fn right_form(wanted: &[SelectorToken], found: &TextLexeme<'_>) -> &'static str {
    let is_word = |words: &[&str]| words.iter().any(|word| found.text.eq_ignore_ascii_case(word));
    match found.token {
        SelectorToken::To
        | SelectorToken::By
        | SelectorToken::And
        | SelectorToken::Or
        | SelectorToken::Not
        | SelectorToken::Exists
            if wanted == VALUE =>
        {
            " (as a value, put it in double quotes)"
        }
        SelectorToken::Equal if wanted == VALUE => "; equality is written with one `=`",
        SelectorToken::Not if wanted == OPERATORS => "; all other values are written name!=a/b",
        SelectorToken::Word if wanted == OPERATORS && is_word(&["in", "isin"]) => "; a list is written name=a/b",
        SelectorToken::Word if wanted == OPERATORS && is_word(&["is", "eq"]) => "; equality is written with `=`",
        SelectorToken::Word if wanted == OPERATORS && is_word(&["between"]) => "; a range is written step=0/to/6",
        SelectorToken::Word if wanted == OPERATORS && is_word(&["like", "contains", "matches"]) => {
            "; a pattern is written name~\"a.*\""
        }
        SelectorToken::Equal | SelectorToken::Unequal | SelectorToken::Like
            if wanted != VALUE && wanted != OPERATORS =>
        {
            "; put a value with this character in double quotes"
        }
        token if wanted != VALUE && wanted != OPERATORS && OPERATORS.contains(&token) => {
            "; a comparison has one bound: write two, such as t>=0,t<10"
        }
        _ => "",
    }
}

impl<'a> SelectorParser<'a> {
    pub(crate) fn new(lexemes: Vec<TextLexeme<'a>>) -> SelectorParser<'a> {
        SelectorParser {
            lexemes,
            next: 0,
            depth: 0,
            items: 0,
        }
    }

    pub(crate) fn peek(&self) -> SelectorToken {
        self.lexemes[self.next].token
    }

    fn is_lone_star(&self) -> bool {
        matches!(
            self.lexemes[..],
            [
                TextLexeme {
                    token: SelectorToken::Star,
                    ..
                },
                _
            ]
        )
    }

    /// Takes the next lexeme, which must be one of `wanted`; the end is never passed.
    pub(crate) fn take(&mut self, wanted: &[SelectorToken], expected: &str) -> Result<SyntaxItem<'a>> {
        let lexeme = &mut self.lexemes[self.next];
        if !wanted.contains(&lexeme.token) {
            let found = match lexeme.token {
                SelectorToken::Word | SelectorToken::Quoted => format!("{:?}", lexeme.text),
                token => token.sign().to_owned(),
            };
            let hint = right_form(wanted, lexeme);
            return Err(invalid(lexeme.at, format!("expected {expected}, found {found}{hint}")));
        }
        let item = SyntaxItem {
            text: std::mem::take(&mut lexeme.text),
            at: lexeme.at,
        };
        if lexeme.token != SelectorToken::End {
            self.next += 1;
        }
        Ok(item)
    }

    fn selector(&mut self) -> Result<SelectorSyntax<'a>> {
        self.chain(SelectorToken::Comma, Self::either, SelectorSyntax::All)
    }

    fn either(&mut self) -> Result<SelectorSyntax<'a>> {
        self.chain(SelectorToken::Or, Self::both, SelectorSyntax::Any)
    }

    fn both(&mut self) -> Result<SelectorSyntax<'a>> {
        self.chain(SelectorToken::And, Self::unit, SelectorSyntax::All)
    }

    fn chain(
        &mut self,
        separator: SelectorToken,
        part: fn(&mut Self) -> Result<SelectorSyntax<'a>>,
        join: fn(Vec<SelectorSyntax<'a>>) -> SelectorSyntax<'a>,
    ) -> Result<SelectorSyntax<'a>> {
        let first = part(self)?;
        if self.peek() != separator {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.peek() == separator {
            self.next += 1;
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn unit(&mut self) -> Result<SelectorSyntax<'a>> {
        match self.peek() {
            SelectorToken::Not => {
                self.enter()?;
                let inner = self.unit()?;
                self.depth -= 1;
                Ok(SelectorSyntax::Not(Box::new(inner)))
            }
            SelectorToken::Open => {
                self.enter()?;
                let inner = self.selector()?;
                self.take(&[SelectorToken::Close], "`,`, `and`, `or` or `)`")?;
                self.depth -= 1;
                Ok(inner)
            }
            SelectorToken::Exists => {
                self.next += 1;
                self.take(&[SelectorToken::Open], "`(`")?;
                let name = self.take(&[SelectorToken::Word], "the name of an attribute")?;
                self.take(&[SelectorToken::Close], "`)`")?;
                Ok(SelectorSyntax::Test {
                    name,
                    ask: SyntaxTest::Exists,
                })
            }
            _ => self.comparison(),
        }
    }

    /// Passes a `not` or `(`.
    fn enter(&mut self) -> Result<()> {
        if self.depth == DEPTH_MAX {
            let cause = format!("nested more than {DEPTH_MAX} deep");
            return Err(Error::new(Code::LimitExceeded, "selector", cause).at(self.lexemes[self.next].at));
        }
        self.depth += 1;
        self.next += 1;
        Ok(())
    }

    fn comparison(&mut self) -> Result<SelectorSyntax<'a>> {
        let name = self.take(
            &[SelectorToken::Word],
            "the name of an attribute, `not`, `exists(` or `(`",
        )?;
        let op = self.peek();
        let op_at = self.take(OPERATORS, "one of `=` `!=` `<` `<=` `>` `>=` `~`")?.at;
        let ask = match op {
            SelectorToken::Like => SyntaxTest::Like(self.take(VALUE, "a regular expression")?),
            SelectorToken::Equal | SelectorToken::Unequal => self.among(op == SelectorToken::Unequal)?,
            _ => SyntaxTest::Compare {
                op,
                op_at,
                bound: self.item("a value")?,
            },
        };
        Ok(SelectorSyntax::Test { name, ask })
    }

    /// Parses the right side of `=` and `!=`: `*`, a list or a range.
    fn among(&mut self, negated: bool) -> Result<SyntaxTest<'a>> {
        if self.peek() == SelectorToken::Star && !negated {
            self.next += 1;
            return Ok(SyntaxTest::Exists);
        }
        let first = self.item(if negated { "a value" } else { "a value or `*`" })?;
        let mut items = vec![first];
        while self.peek() == SelectorToken::Slash {
            self.next += 1;
            if self.peek() == SelectorToken::To && items.len() == 1 {
                return self.range(negated, items.swap_remove(0));
            }
            items.push(self.item(if items.len() == 1 { "a value or `to`" } else { "a value" })?);
        }
        Ok(SyntaxTest::Among { negated, items })
    }

    /// From `to` on.
    fn range(&mut self, negated: bool, first: SyntaxItem<'a>) -> Result<SyntaxTest<'a>> {
        self.next += 1;
        self.take(&[SelectorToken::Slash], "`/`")?;
        let last = self.item("the last value of the range")?;
        let mut by = None;
        if self.peek() == SelectorToken::Slash {
            self.next += 1;
            self.take(&[SelectorToken::By], "`by`")?;
            self.take(&[SelectorToken::Slash], "`/`")?;
            by = Some(self.item("the width of the range's steps")?);
        }
        if self.peek() == SelectorToken::Slash {
            return Err(invalid(
                self.lexemes[self.next].at,
                "a range ends here; lists and ranges do not mix",
            ));
        }
        Ok(SyntaxTest::Range {
            negated,
            first,
            last,
            by,
        })
    }

    /// Parses the right side of `=` in a request; also returns the positions of its quoted values.
    pub(crate) fn request_values(&mut self) -> Result<(SyntaxTest<'a>, Vec<usize>)> {
        let from = self.next;
        let ask = self.among(false)?;
        let taken = &self.lexemes[from..self.next];
        let quoted = taken
            .iter()
            .filter(|lexeme| lexeme.token == SelectorToken::Quoted)
            .map(|lexeme| lexeme.at);
        Ok((ask, quoted.collect()))
    }

    fn item(&mut self, expected: &str) -> Result<SyntaxItem<'a>> {
        let item = self.take(VALUE, expected)?;
        self.items += 1;
        if self.items > ITEMS_MAX {
            let cause = format!("more than {ITEMS_MAX} values");
            return Err(Error::new(Code::LimitExceeded, "selector", cause).at(item.at));
        }
        Ok(item)
    }
}
