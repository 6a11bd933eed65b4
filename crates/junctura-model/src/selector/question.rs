//! A selector in parts, for columnar storage: each value is tested once, however many objects have it.

use std::borrow::Cow;

use super::Selector;
use super::expr::{AttributeTest, SelectorExpr, TestCheck, TestedAttribute};
use super::items::ItemList;
use crate::schema::AttrId;

/// The parts of a selector.
///
/// An [`AttributeQuestion`] is false for an object without the attribute, so its [`SelectorQuestion::Not`] is true.
#[derive(Clone, Debug)]
pub enum SelectorQuestion<'a> {
    /// Nothing: every object is one.
    Everything,
    /// All of these.
    All(Vec<SelectorQuestion<'a>>),
    /// Any of these.
    Any(Vec<SelectorQuestion<'a>>),
    /// Not this.
    Not(Box<SelectorQuestion<'a>>),
    /// Something of one attribute.
    Test(AttributeQuestion<'a>),
}

/// A test of one attribute.
#[derive(Clone, Copy, Debug)]
pub struct AttributeQuestion<'a> {
    test: &'a AttributeTest,
}

impl Selector {
    /// Its parts.
    #[must_use]
    pub fn question(&self) -> SelectorQuestion<'_> {
        SelectorQuestion::of(self.expr())
    }
}

impl<'a> SelectorQuestion<'a> {
    fn of(expr: &'a SelectorExpr) -> Self {
        let all = |parts: &'a [SelectorExpr]| parts.iter().map(Self::of).collect();
        match expr {
            SelectorExpr::Everything => Self::Everything,
            SelectorExpr::All(parts) => Self::All(all(parts)),
            SelectorExpr::Any(parts) => Self::Any(all(parts)),
            SelectorExpr::Not(inner) => Self::Not(Box::new(Self::of(inner))),
            SelectorExpr::Test(test) => Self::Test(AttributeQuestion { test }),
        }
    }
}

impl<'a> AttributeQuestion<'a> {
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

    /// Returns whether an existing value, in canonical text, passes.
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        self.test.holds(text)
    }

    /// Returns the number of values that it lists, if it does so: `a=1/2/3`, `a=0/to/24/by/6`.
    #[must_use]
    pub fn named_count(self) -> Option<u128> {
        match &self.test.check {
            TestCheck::Among { negated: false, items } => Some(ItemList::iter(items).count() as u128),
            TestCheck::Range { negated: false, range } => range.count(),
            _ => None,
        }
    }

    /// These values, if there are `most` or fewer.
    #[must_use]
    pub fn named(self, most: usize) -> Option<Vec<Cow<'a, str>>> {
        match &self.test.check {
            TestCheck::Among { negated: false, items } => {
                let values: Vec<_> = ItemList::iter(items).map(Cow::Borrowed).collect();
                (values.len() <= most).then_some(values)
            }
            TestCheck::Range { negated: false, range } => {
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
            TestCheck::Among { negated: false, items } if !self.attr().list => Some(ItemList::iter(items)),
            _ => None,
        }
    }

    fn attr(self) -> &'a TestedAttribute {
        &self.test.attr
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestRandom, random_record, random_selector};
    use super::*;
    use crate::record::RecordRef;
    use crate::schema::Schema;

    fn answer(question: &SelectorQuestion<'_>, record: RecordRef<'_>) -> bool {
        match question {
            SelectorQuestion::Everything => true,
            SelectorQuestion::All(parts) => parts.iter().all(|part| answer(part, record)),
            SelectorQuestion::Any(parts) => parts.iter().any(|part| answer(part, record)),
            SelectorQuestion::Not(inner) => !answer(inner, record),
            SelectorQuestion::Test(asked) => {
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
        let mut random = TestRandom(7);
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
            let SelectorQuestion::Test(asked) = selector.question() else {
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
