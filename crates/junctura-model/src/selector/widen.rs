//! Equivalent tests of MARS for the schema `mars`.
//!
//! MARS names a parameter by number, and objects by short name: `param=167` and `param=167.128` also match objects with
//! `paramId=167`. A control forecast has no number in MARS: a test that member 0 passes also matches objects of type
//! `cf` without a number. The result prints as it is evaluated, and reads back equal.

use super::expr::{AttributeTest, SelectorExpr, TestCheck};
use super::items::ItemList;
use super::typed::attr_of;
use crate::schema::Schema;

const SCHEMA: &str = "mars";
const CONTROL: &str = "cf";
const DIGITS_MAX: usize = 9;

pub(super) fn widen(schema: &Schema, test: AttributeTest) -> SelectorExpr {
    if schema.name() != SCHEMA {
        return SelectorExpr::Test(test);
    }
    match &*test.attr.name {
        "param" => by_identifier(schema, test),
        "number" => with_control(schema, test),
        _ => SelectorExpr::Test(test),
    }
}

/// If all matching objects have another type, no control forecast is added.
pub(super) fn narrow(schema: &Schema, parts: Vec<SelectorExpr>) -> Vec<SelectorExpr> {
    let excludes_control = |part: &SelectorExpr| match part {
        SelectorExpr::Test(AttributeTest {
            attr,
            check: TestCheck::Among { negated: false, items },
        }) => &*attr.name == "type" && !ItemList::iter(items).any(|kind| kind == CONTROL),
        _ => false,
    };
    if schema.name() != SCHEMA || !parts.iter().any(excludes_control) {
        return parts;
    }
    let numbered = |part| match part {
        SelectorExpr::Any(mut either) if is_with_control(&either) => either.swap_remove(0),
        part => part,
    };
    parts.into_iter().map(numbered).collect()
}

fn is_with_control(either: &[SelectorExpr]) -> bool {
    let [SelectorExpr::Test(test), SelectorExpr::All(control)] = either else {
        return false;
    };
    let is_control = |part: &SelectorExpr| matches!(part, SelectorExpr::Test(test) if &*test.attr.name == "type" && test.holds(CONTROL));
    &*test.attr.name == "number" && control.len() == 2 && control.first().is_some_and(is_control)
}

fn by_identifier(schema: &Schema, test: AttributeTest) -> SelectorExpr {
    let TestCheck::Among { negated, items } = &test.check else {
        return SelectorExpr::Test(test);
    };
    let negated = *negated;
    let identifiers: Vec<String> = ItemList::iter(items).filter_map(identifier).collect();
    let Some(attribute) = schema.find("paramId").filter(|_| !identifiers.is_empty()) else {
        return SelectorExpr::Test(test);
    };
    let check = TestCheck::Among {
        negated: false,
        items: ItemList::new(&identifiers),
    };
    let attr = attr_of(schema, attribute);
    let same = SelectorExpr::Test(AttributeTest { attr, check });
    if negated {
        SelectorExpr::all(vec![SelectorExpr::Test(test), SelectorExpr::Not(Box::new(same))])
    } else {
        SelectorExpr::any(vec![SelectorExpr::Test(test), same])
    }
}

/// The identifier that ecCodes gives a number, alone or with the number of its table.
fn identifier(text: &str) -> Option<String> {
    let number = |text: &str| {
        let digits = (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let Some((parameter, table)) = text.split_once('.') else {
        return number(text).map(|number| number.to_string());
    };
    let (parameter, table) = (number(parameter)?, number(table)?);
    let table = if table == 128 { 0 } else { table };
    (parameter < 1000).then(|| (table * 1000 + parameter).to_string())
}

fn with_control(schema: &Schema, test: AttributeTest) -> SelectorExpr {
    let asks_value = matches!(
        test.check,
        TestCheck::Among { .. } | TestCheck::Range { .. } | TestCheck::Compare(_)
    );
    let kind = schema.find("type").filter(|_| asks_value && test.holds("0"));
    let Some(kind) = kind else {
        return SelectorExpr::Test(test);
    };
    let is_control = SelectorExpr::Test(AttributeTest {
        attr: attr_of(schema, kind),
        check: TestCheck::Among {
            negated: false,
            items: ItemList::new(&[CONTROL.to_owned()]),
        },
    });
    let has_number = SelectorExpr::Test(AttributeTest {
        attr: test.attr.clone(),
        check: TestCheck::Exists,
    });
    let control = SelectorExpr::all(vec![is_control, SelectorExpr::Not(Box::new(has_number))]);
    SelectorExpr::any(vec![SelectorExpr::Test(test), control])
}
