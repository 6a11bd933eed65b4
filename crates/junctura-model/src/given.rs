//! What may stand as the value of an attribute, so that `("step", 6)` and `("step", "6")` are both written plainly.

use crate::Given;

/// Something that can be given as an attribute's value; the schema's type decides how it is read.
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
