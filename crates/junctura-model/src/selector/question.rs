//! A selector taken apart, for whoever keeps values in columns: each value is asked once, however many objects have it.

use super::Selector;
use super::expr::{Attr, Check, Expr, Test};
use super::items::Items;
use crate::schema::AttrId;

/// What a selector asks, part by part.
///
/// An [`Asked`] is false of an object without the attribute, so that [`Question::Not`] of it is true.
#[derive(Clone, Debug)]
pub enum Question<'a> {
    /// Nothing: every object is one.
    Everything,
    /// All of these.
    All(Vec<Question<'a>>),
    /// Any of these.
    Any(Vec<Question<'a>>),
    /// Not this.
    Not(Box<Question<'a>>),
    /// Something of one attribute.
    Test(Asked<'a>),
}

/// What is asked of one attribute.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    test: &'a Test,
}

impl Selector {
    /// Its parts.
    #[must_use]
    pub fn question(&self) -> Question<'_> {
        Question::of(self.expr())
    }
}

impl<'a> Question<'a> {
    fn of(expr: &'a Expr) -> Self {
        let all = |parts: &'a [Expr]| parts.iter().map(Self::of).collect();
        match expr {
            Expr::Everything => Self::Everything,
            Expr::All(parts) => Self::All(all(parts)),
            Expr::Any(parts) => Self::Any(all(parts)),
            Expr::Not(inner) => Self::Not(Box::new(Self::of(inner))),
            Expr::Test(test) => Self::Test(Asked { test }),
        }
    }
}

impl<'a> Asked<'a> {
    /// The attribute; [`AttrId::OPEN`] for one that the schema does not declare.
    #[must_use]
    pub fn attribute(self) -> AttrId {
        self.attr().id
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.test.attr.name
    }

    /// Does a value that is there, in its canonical text, pass?
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        self.test.holds(text)
    }

    /// The values that it names one by one, where it does that: `a=1/2/3`.
    #[must_use]
    pub fn named(self) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
        match &self.test.check {
            Check::Among { negated: false, items } => Some(Items::iter(items)),
            _ => None,
        }
    }

    fn attr(self) -> &'a Attr {
        &self.test.attr
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, random_record, random_selector};
    use super::*;
    use crate::record::RecordRef;
    use crate::schema::Schema;

    fn answer(question: &Question<'_>, record: RecordRef<'_>) -> bool {
        match question {
            Question::Everything => true,
            Question::All(parts) => parts.iter().all(|part| answer(part, record)),
            Question::Any(parts) => parts.iter().any(|part| answer(part, record)),
            Question::Not(inner) => !answer(inner, record),
            Question::Test(asked) => {
                let value = match asked.attribute() {
                    AttrId::OPEN => record.get_open(asked.name()),
                    id => record.get(id),
                };
                value.is_some_and(|text| asked.holds(text))
            }
        }
    }

    #[test]
    fn its_parts_say_what_it_says() {
        let schema = Schema::builtin("mars").unwrap();
        let mut random = Random(7);
        for _ in 0..2000 {
            let selector = Selector::parse(&random_selector(&mut random, &schema), &schema).unwrap();
            let record = random_record(&mut random, &schema);
            let expected = selector.matches(record.as_ref());
            assert_eq!(answer(&selector.question(), record.as_ref()), expected, "{selector}");
        }
    }

    #[test]
    fn values_that_are_named_are_told() {
        let schema = Schema::builtin("mars").unwrap();
        let selector = Selector::parse("param=t/u", &schema).unwrap();
        let Question::Test(asked) = selector.question() else {
            panic!("one test");
        };
        assert_eq!(asked.named().unwrap().collect::<Vec<_>>(), ["t", "u"]);
    }
}
