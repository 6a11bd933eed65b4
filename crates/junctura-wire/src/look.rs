//! Bodies of requests that look at many objects and answer with little: counts, and the first objects of a list.

use std::borrow::Cow;

use minicbor::{Decode, Encode};

/// Asks how many objects match, for each combination of the values of some attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct TallyRequest<'a> {
    /// The selector's text.
    #[n(0)]
    pub selector: Cow<'a, str>,
    /// The attributes, at most [`Self::ATTRIBUTES_MAX`].
    #[n(1)]
    pub by: Vec<Cow<'a, str>>,
    /// The most groups of the answer, from 1 to [`Self::GROUPS_MAX`].
    #[n(2)]
    pub limit: u32,
    /// Whether to sum the bytes of the payloads too: each object is looked at then.
    #[cbor(n(3), default)]
    pub bytes: bool,
    /// Whether to count only objects that are in the listing index already: newer ones are counted without a look at them.
    #[cbor(n(4), default)]
    pub filed_only: bool,
}

impl TallyRequest<'_> {
    /// The most attributes of a tally.
    pub const ATTRIBUTES_MAX: usize = 8;
    /// The most groups of a tally.
    pub const GROUPS_MAX: u32 = 1000;
}

/// The answer to a tally.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct TalliedBody<'a> {
    /// The newest sequence number that was looked at.
    #[n(0)]
    pub sequence: u64,
    /// Visible objects that were not looked at, since they are not in the listing index; whether they match is not known.
    #[n(1)]
    pub newer: u64,
    /// The groups, in the order of schemas and values; an object without the attribute is behind those with it.
    #[n(2)]
    pub groups: Vec<TalliedGroup<'a>>,
    /// Objects of further groups.
    #[n(3)]
    pub others: u64,
    /// The bytes of their payloads, if asked for.
    #[n(4)]
    pub other_bytes: Option<u64>,
}

/// The objects of one schema that have the same values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct TalliedGroup<'a> {
    /// The schema's number.
    #[n(0)]
    pub schema: u16,
    /// The value of each attribute of the request; `None`: the objects do not have it.
    #[n(1)]
    pub values: Vec<Option<Cow<'a, str>>>,
    /// How many objects there are.
    #[n(2)]
    pub objects: u64,
    /// The bytes of their payloads, if asked for.
    #[n(3)]
    pub bytes: Option<u64>,
}

/// A position in the order of a list: that of an object, which may have left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ListPosition<'a> {
    /// The schema's number.
    #[n(0)]
    pub schema: u16,
    /// The object's record.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub record: Cow<'a, [u8]>,
}

impl ListPosition<'_> {
    /// The most objects of a list that has a limit.
    pub const OBJECTS_MAX: u64 = 1000;
}
