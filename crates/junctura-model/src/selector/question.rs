//! A selector taken apart, for whoever keeps values in columns: each value is asked once, however many objects have it.

use std::borrow::Cow;

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

    /// How many values it names one by one, where it does that: `a=1/2/3`, `a=0/to/24/by/6`.
    #[must_use]
    pub fn named_count(self) -> Option<u128> {
        match &self.test.check {
            Check::Among { negated: false, items } => Some(Items::iter(items).count() as u128),
            Check::Range { negated: false, range } => range.count(),
            _ => None,
        }
    }

    /// These values, if there are `most` or fewer.
    #[must_use]
    pub fn named(self, most: usize) -> Option<Vec<Cow<'a, str>>> {
        match &self.test.check {
            Check::Among { negated: false, items } => {
                let values: Vec<_> = Items::iter(items).map(Cow::Borrowed).collect();
                (values.len() <= most).then_some(values)
            }
            Check::Range { negated: false, range } => {
                let values = range.values(self.attr().scalar, most)?;
                Some(values.into_iter().map(Cow::Owned).collect())
            }
            _ => None,
        }
    }

    /// The canonical texts that pass, where no others do: `a=1/2`. None of lists, which pass for one of their elements.
    #[must_use]
    pub fn texts(self) -> Option<impl Iterator<Item = &'a str>> {
        match &self.test.check {
            Check::Among { negated: false, items } if !self.attr().list => Some(Items::iter(items)),
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
        let named = |text: &str| {
            let selector = Selector::parse(text, &schema).unwrap();
            let Question::Test(asked) = selector.question() else {
                panic!("one test");
            };
            let (count, values) = (asked.named_count()?, asked.named(3));
            Some((count, values.map(|values| values.join(" "))))
        };
        let these = |count, values: &str| Some((count, Some(values.to_owned())));
        assert_eq!(named("param=t/u"), these(2, "t u"));
        assert_eq!(named("step=12/to/0/by/6"), these(3, "12 6 0"));
        assert_eq!(named("step=0/to/1"), these(2, "0 1"));
        assert_eq!(named("date=20261231/to/20270101"), these(2, "20261231 20270101"));
        assert_eq!(named("number=1/to/4"), Some((4, None)));
        assert_eq!(named("number=1/2/3/4"), Some((4, None)));
        for none in ["step>0", "param!=t", "step!=0/to/6", "exists(number)"] {
            assert_eq!(named(none), None, "{none}");
        }
    }
}
