//! Prints selectors: one canonical text each, which reads back to an equal selector; and, for people, with ranges expanded.

use std::fmt::{self, Display, Formatter, Write};

use super::expr::{AttributeTest, SelectorExpr, TestCheck, TestedAttribute};
use super::range::NumberRange;
use crate::text::quote;

/// Ranges of more values are only described.
const EXPANDED_MAX: usize = 1000;

/// The expressions that need no parentheses in a context, from the widest to the narrowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PrintContext {
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
pub(crate) struct PrintedExpr<'a> {
    pub(crate) expr: &'a SelectorExpr,
    pub(crate) expanded: bool,
}

impl Display for PrintedExpr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.print(self.expr, PrintContext::Selector, f)
    }
}

impl PrintedExpr<'_> {
    fn print(&self, expr: &SelectorExpr, place: PrintContext, f: &mut Formatter<'_>) -> fmt::Result {
        match expr {
            SelectorExpr::Everything => f.write_str("*"),
            SelectorExpr::All(parts) if place == PrintContext::Selector => {
                self.join(parts, ",", PrintContext::Either, f)
            }
            SelectorExpr::All(parts) if place <= PrintContext::Both => self.join(parts, " and ", PrintContext::Unit, f),
            SelectorExpr::Any(parts) if place <= PrintContext::Either => {
                self.join(parts, " or ", PrintContext::Both, f)
            }
            SelectorExpr::All(_) | SelectorExpr::Any(_) => {
                f.write_char('(')?;
                self.print(expr, PrintContext::Selector, f)?;
                f.write_char(')')
            }
            SelectorExpr::Not(inner) => {
                f.write_str("not ")?;
                self.print(inner, PrintContext::Unit, f)
            }
            SelectorExpr::Test(test) => f.write_str(&self.test(test)),
        }
    }

    fn join(&self, parts: &[SelectorExpr], separator: &str, place: PrintContext, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                f.write_str(separator)?;
            }
            self.print(part, place, f)?;
        }
        Ok(())
    }

    fn test(&self, test: &AttributeTest) -> String {
        let name = &test.attr.name;
        let mut out = String::from(&**name);
        match &test.check {
            TestCheck::Exists => return format!("exists({name})"),
            TestCheck::Among { negated, items } => {
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
            TestCheck::Range { negated, range } => {
                out.push_str(equals(*negated));
                self.range(&test.attr, range, &mut out);
            }
            TestCheck::Compare(bound) => {
                out.push_str(bound.op.sign());
                quote(&bound.text, &mut out);
            }
            TestCheck::Like(pattern) => {
                out.push('~');
                quote(pattern.text(), &mut out);
            }
        }
        out
    }

    fn range(&self, attr: &TestedAttribute, range: &NumberRange, out: &mut String) {
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
