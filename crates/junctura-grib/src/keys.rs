//! The contents of a header, as ordered names and values.

use crate::value::KeyValue;

/// The keys of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageKeys {
    mars: Vec<(&'static str, KeyValue)>,
    descriptive: Vec<(&'static str, KeyValue)>,
    additional: Vec<(&'static str, KeyValue)>,
}

impl MessageKeys {
    pub(crate) fn new(
        mars: Vec<(&'static str, KeyValue)>,
        descriptive: Vec<(&'static str, KeyValue)>,
        additional: Vec<(&'static str, KeyValue)>,
    ) -> MessageKeys {
        MessageKeys {
            mars,
            descriptive,
            additional,
        }
    }

    /// Returns the keys that distinguish the field beyond its mars keys: keys that MARS lacks, and values that replace
    /// those of mars keys which are missing or cut. Empty where the mars keys identify the field.
    #[must_use]
    pub fn additional(&self) -> impl ExactSizeIterator<Item = (&'static str, &KeyValue)> {
        self.additional.iter().map(|(name, value)| (*name, value))
    }

    /// The keys of ecCodes' `mars` namespace, with its names and values: `param` is `130.128` in edition 1 and
    /// `130` in edition 2.
    #[must_use]
    pub fn mars(&self) -> impl ExactSizeIterator<Item = (&'static str, &KeyValue)> {
        self.mars.iter().map(|(name, value)| (*name, value))
    }

    /// Returns descriptive keys, which do not name the field: `edition`, `centre`, `shortName`, `paramId`, `units`,
    /// `typeOfLevel`, `stepType`, `gridType`, `md5GridSection`, `packingType`, `Ni`, `Nj`, `numberOfDataPoints`,
    /// `messageLength`, and `fields`, the number of fields in the message. A message of several fields is described by its
    /// first one.
    #[must_use]
    pub fn descriptive(&self) -> impl ExactSizeIterator<Item = (&'static str, &KeyValue)> {
        self.descriptive.iter().map(|(name, value)| (*name, value))
    }

    /// Returns the attributes with which an object is offered: the mars keys, but `param` is the short name of the
    /// parameter (`t`) where the tables know one, and `paramId` is added. Keys that have no value for this message
    /// (`unavailable`, `MISSING`) and those that begin with `_` are left out.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, &KeyValue)> {
        let short = self.short_name();
        let given = |(name, value): &(&str, &KeyValue)| {
            !name.starts_with('_') && !matches!(value.as_str(), Some("unavailable" | "MISSING"))
        };
        let named = self.mars().filter(given).map(move |(name, value)| match (name, short) {
            ("param", Some(short)) => (name, short),
            _ => (name, value),
        });
        named.chain(self.param_id().map(|id| ("paramId", id)))
    }

    /// The value of a key by ecCodes' name: a mars key, else a descriptive one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&KeyValue> {
        let find = |keys: &'_ [(&'static str, KeyValue)]| keys.iter().position(|(n, _)| *n == name);
        match find(&self.mars) {
            Some(at) => self.mars.get(at).map(|(_, value)| value),
            None => self.descriptive.get(find(&self.descriptive)?).map(|(_, value)| value),
        }
    }

    fn short_name(&self) -> Option<&KeyValue> {
        self.get("shortName")
            .filter(|value| !matches!(value.as_str(), Some("unknown" | "~")))
    }

    fn param_id(&self) -> Option<&KeyValue> {
        self.get("paramId").filter(|value| value.as_integer() != Some(0))
    }
}
