//! Sets of attributes: names with typed values.

use std::ffi::{c_char, c_int};

use junctura::{Given, Result};

use crate::call::argument::{slice, text};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};

/// Attributes of an object: names and values.
pub struct AttributesHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for AttributesHandle {
    type Value = AttributeSet;
    const TAG: u64 = 0x6a63_745f_6174_7472;
    const NAME: &'static str = "attributes";
}

/// The values of a handle. It is public since a handle's type names it; C has no access to it.
#[doc(hidden)]
#[derive(Clone, Default)]
pub struct AttributeSet {
    values: Vec<(String, AttributeValue)>,
}

#[derive(Clone)]
enum AttributeValue {
    Text(String),
    Integer(i64),
    Real(f64),
    List(Vec<String>),
}

impl AttributeSet {
    fn set(&mut self, name: &str, value: AttributeValue) {
        match self.values.iter_mut().find(|(other, _)| other == name) {
            Some((_, place)) => *place = value,
            None => self.values.push((name.to_owned(), value)),
        }
    }

    /// These, and in place of some, or beside them, those of another set.
    pub(crate) fn with(&self, others: &AttributeSet) -> AttributeSet {
        let mut all = self.clone();
        for (name, value) in &others.values {
            all.set(name, value.clone());
        }
        all
    }

    /// Lends the attributes in the form of the facade.
    pub(crate) fn lend<R>(&self, take: impl FnOnce(&[(&str, Given<'_>)]) -> R) -> R {
        let lists: Vec<Vec<Given<'_>>> = self
            .values
            .iter()
            .map(|(_, value)| match value {
                AttributeValue::List(items) => items.iter().map(|item| Given::Text(item)).collect(),
                _ => Vec::new(),
            })
            .collect();
        let given: Vec<(&str, Given<'_>)> = self
            .values
            .iter()
            .zip(&lists)
            .map(|((name, value), list)| {
                let value = match value {
                    AttributeValue::Text(text) => Given::Text(text),
                    AttributeValue::Integer(number) => Given::Integer(*number),
                    AttributeValue::Real(number) => Given::Float(*number),
                    AttributeValue::List(_) => Given::List(list),
                };
                (&**name, value)
            })
            .collect();
        take(&given)
    }
}

/// The attributes of a handle; none for NULL.
///
/// # Safety
/// As [`handle::shared`].
pub(crate) unsafe fn given<'a>(attributes: *const AttributesHandle) -> Result<Option<&'a AttributeSet>> {
    if attributes.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller guarantees.
    unsafe { handle::shared(attributes) }.map(Some)
}

/// Lends the attributes of a handle; none for NULL.
///
/// # Safety
/// As [`handle::shared`].
pub(crate) unsafe fn lend<R>(
    attributes: *const AttributesHandle,
    take: impl FnOnce(&[(&str, Given<'_>)]) -> Result<R>,
) -> Result<R> {
    // SAFETY: as the caller guarantees.
    match unsafe { given(attributes) }? {
        Some(set) => set.lend(take),
        None => take(&[]),
    }
}

unsafe fn set(attributes: *mut AttributesHandle, name: *const c_char, value: AttributeValue) -> Result<()> {
    // SAFETY: the caller of the exported function guarantees the arguments.
    let (set, name) = unsafe { (handle::exclusive(attributes)?, text("name", name)?) };
    set.set(name, value);
    Ok(())
}

/// Makes an empty set of attributes. Free it with jct_attributes_free. It can be filled and used any number
/// of times.
#[unsafe(no_mangle)]
pub extern "C" fn jct_attributes_new() -> *mut AttributesHandle {
    guarded_or(std::ptr::null_mut(), || Ok(handle::create(AttributeSet::default())))
}

/// Frees a set of attributes. NULL has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_attributes_free(attributes: *mut AttributesHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(attributes) }.map(drop));
}

/// Removes all attributes from a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_attributes_clear(attributes: *mut AttributesHandle) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe { handle::exclusive(attributes) }?.values.clear();
        Ok(())
    })
}

/// Sets an attribute to a text; replaces an earlier value. The schema reads the text by the type of the
/// attribute, so that dates and times can be set by this function; not lists: see jct_attributes_set_list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_attributes_set_text(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let value = text("value", value)?;
            set(attributes, name, AttributeValue::Text(value.to_owned()))
        }
    })
}

/// Sets an attribute to an integer; replaces an earlier value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_attributes_set_int(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: i64,
) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { set(attributes, name, AttributeValue::Integer(value)) })
}

/// Sets an attribute to a real number; replaces an earlier value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_attributes_set_real(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: f64,
) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { set(attributes, name, AttributeValue::Real(value)) })
}

/// Sets an attribute that is a list to `count` texts; replaces an earlier value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_attributes_set_list(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const *const c_char,
    count: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let values = slice("values", values, count)?;
            let items: Result<Vec<String>> = values
                .iter()
                .map(|item| text("values", *item).map(str::to_owned))
                .collect();
            set(attributes, name, AttributeValue::List(items?))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_replace_earlier_ones() {
        let mut first = AttributeSet::default();
        first.set("a", AttributeValue::Integer(1));
        first.set("a", AttributeValue::Integer(2));
        first.set("b", AttributeValue::List(vec!["x".to_owned()]));
        let mut second = AttributeSet::default();
        second.set("a", AttributeValue::Text("3".to_owned()));
        second.set("c", AttributeValue::Real(0.5));
        first.with(&second).lend(|given| {
            let list = [Given::Text("x")];
            let expected = [
                ("a", Given::Text("3")),
                ("b", Given::List(&list)),
                ("c", Given::Float(0.5)),
            ];
            assert_eq!(given, expected);
        });
    }
}
