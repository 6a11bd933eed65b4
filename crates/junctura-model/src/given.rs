//! Types that can be attribute values, so that `("step", 6)` and `("step", "6")` are equivalent.

use std::borrow::Cow;

use crate::{Given, Schema, list_items};

/// Something that can be given as an attribute's value; the schema's type decides how it is read.
///
/// ```
/// # use junctura_model::{Given, IntoGiven};
/// assert_eq!("2t".into_given(), Given::Text("2t"));
/// assert_eq!(6.into_given(), Given::Integer(6));
/// ```
pub trait IntoGiven<'a> {
    /// As the model takes it.
    fn into_given(self) -> Given<'a>;
}

impl<'a> IntoGiven<'a> for Given<'a> {
    fn into_given(self) -> Given<'a> {
        self
    }
}

impl<'a> IntoGiven<'a> for &Given<'a> {
    fn into_given(self) -> Given<'a> {
        *self
    }
}

impl<'a> IntoGiven<'a> for &'a str {
    fn into_given(self) -> Given<'a> {
        Given::Text(self)
    }
}

impl<'a> IntoGiven<'a> for &'a String {
    fn into_given(self) -> Given<'a> {
        Given::Text(self)
    }
}

impl<'a> IntoGiven<'a> for i64 {
    fn into_given(self) -> Given<'a> {
        Given::Integer(self)
    }
}

impl<'a> IntoGiven<'a> for i32 {
    fn into_given(self) -> Given<'a> {
        Given::Integer(i64::from(self))
    }
}

impl<'a> IntoGiven<'a> for u32 {
    fn into_given(self) -> Given<'a> {
        Given::Integer(i64::from(self))
    }
}

impl<'a> IntoGiven<'a> for f64 {
    fn into_given(self) -> Given<'a> {
        Given::Float(self)
    }
}

impl<'a> IntoGiven<'a> for bool {
    fn into_given(self) -> Given<'a> {
        Given::Bool(self)
    }
}

/// Canonical texts, such as those of an object's attributes, as an offer or a store takes them: of lists each item.
pub fn with_given<'t, R>(
    schema: &Schema,
    texts: impl Iterator<Item = (&'t str, &'t str)>,
    take: impl FnOnce(&[(&str, Given<'_>)]) -> R,
) -> R {
    let is_list = |name: &str| schema.find(name).is_some_and(|id| schema.attribute(id).kind.list);
    let read = |(name, text)| {
        (
            name,
            text,
            is_list(name).then(|| list_items(text).collect::<Vec<Cow<'_, str>>>()),
        )
    };
    let texts: Vec<_> = texts.map(read).collect();
    let all = texts.iter().filter_map(|(.., items)| items.as_ref()).flatten();
    let items: Vec<Given<'_>> = all.map(|item| Given::Text(item)).collect();
    let mut rest = &*items;
    let given = texts.iter().map(|(name, text, items)| match items {
        None => (*name, Given::Text(text)),
        Some(items) => {
            let (its, others) = rest.split_at(items.len());
            rest = others;
            (*name, Given::List(its))
        }
    });
    let given: Vec<_> = given.collect();
    take(&given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_lists_each_item_is_given() {
        let schema = Schema::builtin("free").expect("it is built in");
        let texts = [("name", "a/b"), ("shape", "4/6"), ("dtype", "<f8")];
        with_given(&schema, texts.into_iter(), |given| {
            let extents = [Given::Text("4"), Given::Text("6")];
            assert_eq!(
                given,
                [
                    ("name", Given::Text("a/b")),
                    ("shape", Given::List(&extents)),
                    ("dtype", Given::Text("<f8"))
                ]
            );
        });
    }
}
