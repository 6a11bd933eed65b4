//! Prints selectors: one canonical text each, which reads back to an equal selector; and, for people, with ranges expanded.

use std::fmt::{self, Display, Formatter, Write};

use super::expr::{Attr, Check, Expr, Test};
use super::range::Range;
use crate::text::quote;

/// Ranges of more values are only described.
const EXPANDED_MAX: usize = 1000;

/// What may stand somewhere without parentheses, from the widest to the narrowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The whole, or all inside parentheses: commas.
    Selector,
    /// Between commas: `or`.
    Either,
    /// Between `or`: `and`.
    Both,
    /// After `not`, between `and`.
    Unit,
}

/// An expression in one of the two forms.
pub(crate) struct Printed<'a> {
    pub(crate) expr: &'a Expr,
    pub(crate) expanded: bool,
}

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.print(self.expr, Place::Selector, f)
    }
}

impl Printed<'_> {
    fn print(&self, expr: &Expr, place: Place, f: &mut Formatter<'_>) -> fmt::Result {
        match expr {
            Expr::Everything => f.write_str("*"),
            Expr::All(parts) if place == Place::Selector => self.join(parts, ",", Place::Either, f),
            Expr::All(parts) if place <= Place::Both => self.join(parts, " and ", Place::Unit, f),
            Expr::Any(parts) if place <= Place::Either => self.join(parts, " or ", Place::Both, f),
            Expr::All(_) | Expr::Any(_) => {
                f.write_char('(')?;
                self.print(expr, Place::Selector, f)?;
                f.write_char(')')
            }
            Expr::Not(inner) => {
                f.write_str("not ")?;
                self.print(inner, Place::Unit, f)
            }
            Expr::Test(test) => f.write_str(&self.test(test)),
        }
    }

    fn join(&self, parts: &[Expr], separator: &str, place: Place, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                f.write_str(separator)?;
            }
            self.print(part, place, f)?;
        }
        Ok(())
    }

    fn test(&self, test: &Test) -> String {
        let name = &test.attr.name;
        let mut out = String::from(&**name);
        match &test.check {
            Check::Exists => return format!("exists({name})"),
            Check::Among { negated, items } => {
                out.push_str(equals(*negated));
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push('/');
                    }
                    // Elements of lists are kept quoted.
                    if test.attr.list {
                        out.push_str(item);
                    } else {
                        quote(item, &mut out);
                    }
                }
            }
            Check::Range { negated, range } => {
                out.push_str(equals(*negated));
                self.range(&test.attr, range, &mut out);
            }
            Check::Compare(bound) => {
                out.push_str(bound.op.sign());
                quote(&bound.text, &mut out);
            }
            Check::Like(pattern) => {
                out.push('~');
                quote(pattern.text(), &mut out);
            }
        }
        out
    }

    fn range(&self, attr: &Attr, range: &Range, out: &mut String) {
        if self.expanded
            && let Some(values) = range.values(attr.scalar, EXPANDED_MAX)
        {
            out.push_str(&values.join("/"));
            return;
        }
        quote(&range.first, out);
        out.push_str("/to/");
        quote(&range.last, out);
        if let Some(by) = &range.by {
            out.push_str("/by/");
            quote(by, out);
        }
        if self.expanded {
            let known = range.count().map(|count| format!(" ({count} values)"));
            out.push_str(known.as_deref().unwrap_or(" (everything between)"));
        }
    }
}

fn equals(negated: bool) -> &'static str {
    if negated { "!=" } else { "=" }
}
