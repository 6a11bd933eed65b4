//! Reads the grammar of selectors into a syntax tree that no schema has looked at yet.
//!
//! One text is read once and then typed by each schema of a pool. Nesting is counted, so no text can exhaust the stack,
//! and every error points at the lexeme that should have been something else, and says what.

use std::borrow::Cow;

use super::lexer::{Lexeme, Token, invalid, lex};
use crate::error::{Code, Error, Result};

/// How deep parentheses and `not` may nest.
pub const DEPTH_MAX: usize = 64;
/// How many items the lists of a selector may have together.
pub const ITEMS_MAX: usize = 10_000;

/// A selector as it is written.
#[derive(Clone, Debug)]
pub(crate) enum Syntax<'a> {
    Everything,
    All(Vec<Syntax<'a>>),
    Any(Vec<Syntax<'a>>),
    Not(Box<Syntax<'a>>),
    Test { name: Item<'a>, ask: Ask<'a> },
}

/// What is asked of one attribute.
#[derive(Clone, Debug)]
pub(crate) enum Ask<'a> {
    Exists,
    Among {
        negated: bool,
        items: Vec<Item<'a>>,
    },
    Range {
        negated: bool,
        first: Item<'a>,
        last: Item<'a>,
        by: Option<Item<'a>>,
    },
    Compare {
        op: Token,
        op_at: usize,
        bound: Item<'a>,
    },
    Like(Item<'a>),
}

/// A name or a value, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) at: usize,
}

/// Reads a selector.
pub(crate) fn parse(text: &str) -> Result<Syntax<'_>> {
    let mut parser = Parser::new(lex(text)?);
    if parser.peek() == Token::End || parser.is_lone_star() {
        return Ok(Syntax::Everything);
    }
    let syntax = parser.selector()?;
    parser.take(&[Token::End], "`,`, `and`, `or` or the end")?;
    Ok(syntax)
}

pub(crate) struct Parser<'a> {
    lexemes: Vec<Lexeme<'a>>,
    next: usize,
    depth: usize,
    items: usize,
}

const VALUE: &[Token] = &[Token::Word, Token::Quoted];
const OPERATORS: &[Token] = &[
    Token::Equal,
    Token::Unequal,
    Token::Less,
    Token::AtMost,
    Token::Greater,
    Token::AtLeast,
    Token::Like,
];

impl<'a> Parser<'a> {
    pub(crate) fn new(lexemes: Vec<Lexeme<'a>>) -> Parser<'a> {
        Parser {
            lexemes,
            next: 0,
            depth: 0,
            items: 0,
        }
    }

    pub(crate) fn peek(&self) -> Token {
        self.lexemes[self.next].token
    }

    fn is_lone_star(&self) -> bool {
        matches!(self.lexemes[..], [Lexeme { token: Token::Star, .. }, _])
    }

    /// Takes the next lexeme, which must be one of `wanted`; the end is never passed.
    pub(crate) fn take(&mut self, wanted: &[Token], expected: &str) -> Result<Item<'a>> {
        let lexeme = &mut self.lexemes[self.next];
        if !wanted.contains(&lexeme.token) {
            let found = match lexeme.token {
                Token::Word | Token::Quoted => format!("{:?}", lexeme.text),
                token => token.sign().to_owned(),
            };
            let hint = match lexeme.token {
                Token::To | Token::By | Token::And | Token::Or | Token::Not | Token::Exists if wanted == VALUE => {
                    " (as a value it stands in double quotes)"
                }
                _ => "",
            };
            return Err(invalid(lexeme.at, format!("expected {expected}, found {found}{hint}")));
        }
        let item = Item {
            text: std::mem::take(&mut lexeme.text),
            at: lexeme.at,
        };
        if lexeme.token != Token::End {
            self.next += 1;
        }
        Ok(item)
    }

    fn selector(&mut self) -> Result<Syntax<'a>> {
        self.chain(Token::Comma, Self::either, Syntax::All)
    }

    fn either(&mut self) -> Result<Syntax<'a>> {
        self.chain(Token::Or, Self::both, Syntax::Any)
    }

    fn both(&mut self) -> Result<Syntax<'a>> {
        self.chain(Token::And, Self::unit, Syntax::All)
    }

    fn chain(
        &mut self,
        separator: Token,
        part: fn(&mut Self) -> Result<Syntax<'a>>,
        join: fn(Vec<Syntax<'a>>) -> Syntax<'a>,
    ) -> Result<Syntax<'a>> {
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

    fn unit(&mut self) -> Result<Syntax<'a>> {
        match self.peek() {
            Token::Not => {
                self.enter()?;
                let inner = self.unit()?;
                self.depth -= 1;
                Ok(Syntax::Not(Box::new(inner)))
            }
            Token::Open => {
                self.enter()?;
                let inner = self.selector()?;
                self.take(&[Token::Close], "`,`, `and`, `or` or `)`")?;
                self.depth -= 1;
                Ok(inner)
            }
            Token::Exists => {
                self.next += 1;
                self.take(&[Token::Open], "`(`")?;
                let name = self.take(&[Token::Word], "the name of an attribute")?;
                self.take(&[Token::Close], "`)`")?;
                Ok(Syntax::Test { name, ask: Ask::Exists })
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

    fn comparison(&mut self) -> Result<Syntax<'a>> {
        let name = self.take(&[Token::Word], "the name of an attribute, `not`, `exists(` or `(`")?;
        let op = self.peek();
        let op_at = self.take(OPERATORS, "one of `=` `!=` `<` `<=` `>` `>=` `~`")?.at;
        let ask = match op {
            Token::Like => Ask::Like(self.take(VALUE, "a regular expression")?),
            Token::Equal | Token::Unequal => self.among(op == Token::Unequal)?,
            _ => Ask::Compare {
                op,
                op_at,
                bound: self.item("a value")?,
            },
        };
        Ok(Syntax::Test { name, ask })
    }

    /// What stands right of `=` and `!=`: `*`, a list or a range.
    fn among(&mut self, negated: bool) -> Result<Ask<'a>> {
        if self.peek() == Token::Star && !negated {
            self.next += 1;
            return Ok(Ask::Exists);
        }
        let first = self.item(if negated { "a value" } else { "a value or `*`" })?;
        let mut items = vec![first];
        while self.peek() == Token::Slash {
            self.next += 1;
            if self.peek() == Token::To && items.len() == 1 {
                return self.range(negated, items.swap_remove(0));
            }
            items.push(self.item(if items.len() == 1 { "a value or `to`" } else { "a value" })?);
        }
        Ok(Ask::Among { negated, items })
    }

    /// From `to` on.
    fn range(&mut self, negated: bool, first: Item<'a>) -> Result<Ask<'a>> {
        self.next += 1;
        self.take(&[Token::Slash], "`/`")?;
        let last = self.item("the last value of the range")?;
        let mut by = None;
        if self.peek() == Token::Slash {
            self.next += 1;
            self.take(&[Token::By], "`by`")?;
            self.take(&[Token::Slash], "`/`")?;
            by = Some(self.item("the width of the range's steps")?);
        }
        if self.peek() == Token::Slash {
            return Err(invalid(
                self.lexemes[self.next].at,
                "a range ends here; lists and ranges do not mix",
            ));
        }
        Ok(Ask::Range {
            negated,
            first,
            last,
            by,
        })
    }

    /// What stands right of `=` in a request, and where its quoted values stand.
    pub(crate) fn request_values(&mut self) -> Result<(Ask<'a>, Vec<usize>)> {
        let from = self.next;
        let ask = self.among(false)?;
        let taken = &self.lexemes[from..self.next];
        let quoted = taken
            .iter()
            .filter(|lexeme| lexeme.token == Token::Quoted)
            .map(|lexeme| lexeme.at);
        Ok((ask, quoted.collect()))
    }

    fn item(&mut self, expected: &str) -> Result<Item<'a>> {
        let item = self.take(VALUE, expected)?;
        self.items += 1;
        if self.items > ITEMS_MAX {
            let cause = format!("more than {ITEMS_MAX} values");
            return Err(Error::new(Code::LimitExceeded, "selector", cause).at(item.at));
        }
        Ok(item)
    }
}
