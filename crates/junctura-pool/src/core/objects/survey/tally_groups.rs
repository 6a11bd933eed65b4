//! Objects counted by the values of some attributes.

use std::sync::Arc;

use hashbrown::HashMap;
use junctura_model::index::ObjectIndex;
use junctura_model::{AttrId, Code, Error, RecordRef, Result, Schema};
use junctura_wire::frame::BODY_BYTES_MAX;
use junctura_wire::look::{TalliedBody, TalliedGroup, TallyRequest};
use roaring::RoaringBitmap;

use crate::core::objects::index::no_attribute;
use crate::core::objects::object::ObjectRow;

/// Bytes of the values of all groups: the answer is one frame.
const VALUE_BYTES_MAX: usize = BODY_BYTES_MAX / 2;

/// See the module. Groups have places in a table until there are `limit`; all further ones are counted together.
pub(in crate::core) struct TallyGroups {
    schemas: Vec<Arc<Schema>>,
    /// The attributes: names, and per schema what they are.
    by: Vec<TallyAttribute>,
    limit: usize,
    sums_bytes: bool,
    /// By schema and values ([`Self::write_place`]).
    groups: HashMap<Box<[u8]>, GroupCount>,
    others: GroupCount,
    value_bytes: usize,
    /// The place that was written last.
    place: Vec<u8>,
}

struct TallyAttribute {
    name: Box<str>,
    /// Per schema; [`AttrId::OPEN`] where it may be there undeclared.
    ids: Vec<Option<AttrId>>,
}

#[derive(Clone, Copy, Default)]
struct GroupCount {
    objects: u64,
    bytes: u64,
}

impl TallyAttribute {
    fn value<'a>(&self, schema: u16, record: RecordRef<'a>) -> Option<&'a str> {
        match self.ids[usize::from(schema)]? {
            AttrId::OPEN => record.get_open(&self.name),
            id => record.get(id),
        }
    }
}

impl TallyGroups {
    /// # Errors
    /// `InvalidArgument` for an attribute that no schema has, too many attributes, or a limit out of bounds.
    pub(super) fn new(schemas: &[Arc<Schema>], tally: &TallyRequest<'_>) -> Result<Self> {
        let invalid = |subject: &str, cause: String| Err(Error::new(Code::InvalidArgument, subject, cause));
        if !(1..=TallyRequest::GROUPS_MAX).contains(&tally.limit) {
            return invalid("limit", format!("it is from 1 to {}", TallyRequest::GROUPS_MAX));
        }
        if tally.by.len() > TallyRequest::ATTRIBUTES_MAX {
            let cause = format!("a tally is by at most {} attributes", TallyRequest::ATTRIBUTES_MAX);
            return invalid("by", cause);
        }
        let mut by = Vec::new();
        for name in &tally.by {
            let open = |schema: &Schema| schema.is_open().then_some(AttrId::OPEN);
            let ids: Vec<_> = schemas
                .iter()
                .map(|schema| schema.find(name).or(open(schema)))
                .collect();
            if ids.iter().all(Option::is_none) {
                return Err(no_attribute(schemas, "by", name));
            }
            by.push(TallyAttribute {
                name: (&**name).into(),
                ids,
            });
        }
        Ok(Self {
            schemas: schemas.to_vec(),
            by,
            limit: tally.limit as usize,
            sums_bytes: tally.bytes,
            groups: HashMap::new(),
            others: GroupCount::default(),
            value_bytes: 0,
            place: Vec::new(),
        })
    }

    /// Counts an object.
    pub(super) fn add(&mut self, object: &ObjectRow) {
        self.place_of(object);
        let bytes = if self.sums_bytes { object.length } else { 0 };
        self.count(GroupCount { objects: 1, bytes });
    }

    /// Counts an object no more.
    pub(super) fn subtract(&mut self, object: &ObjectRow) {
        self.place_of(object);
        let group = self.groups.get_mut(self.place.as_slice()).unwrap_or(&mut self.others);
        group.objects -= 1;
        group.bytes -= if self.sums_bytes { object.length } else { 0 };
    }

    /// Counts the objects of a schema by the lengths of the index's sets. False: that is not possible, or takes long.
    pub(super) fn add_lengths(&mut self, schema: usize, index: &ObjectIndex, slots: &RoaringBitmap) -> bool {
        if self.sums_bytes || self.by.len() > 1 {
            return false;
        }
        let number = schema as u16;
        let of = |objects| GroupCount { objects, bytes: 0 };
        let Some(attribute) = self.by.first() else {
            self.write_place(number, &[]);
            self.count(of(slots.len()));
            return true;
        };
        let mut rest = slots.len();
        if let Some(id) = attribute.ids[schema] {
            let Some(counts) = index.value_counts(id, &attribute.name, slots) else {
                return false;
            };
            for (value, count) in counts {
                rest -= count;
                self.write_place(number, &[Some(value)]);
                self.count(of(count));
            }
        }
        self.write_place(number, &[None]);
        self.count(of(rest));
        true
    }

    /// The bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.value_bytes + self.groups.len() * size_of::<(Box<[u8]>, GroupCount)>()
    }

    /// The answer, up to this number, while so many objects were not looked at.
    pub(in crate::core) fn answer(&self, sequence: u64, newer: u64) -> TalliedBody<'_> {
        let sum = |count: &GroupCount| self.sums_bytes.then_some(count.bytes);
        let there = self.groups.iter().filter(|(_, count)| count.objects > 0);
        let mut groups: Vec<TalliedGroup<'_>> = there
            .map(|(place, count)| {
                let (schema, values) = read_place(place);
                TalliedGroup {
                    schema,
                    values: values.into_iter().map(|value| value.map(Into::into)).collect(),
                    objects: count.objects,
                    bytes: sum(count),
                }
            })
            .collect();
        groups.sort_unstable_by(|a, b| self.compare(a, b));
        TalliedBody {
            sequence,
            newer,
            groups,
            others: self.others.objects,
            other_bytes: sum(&self.others),
        }
    }

    /// The order of two groups: by schema, then by values; a missing value is last.
    fn compare(&self, a: &TalliedGroup<'_>, b: &TalliedGroup<'_>) -> std::cmp::Ordering {
        let mut order = a.schema.cmp(&b.schema);
        let schema = usize::from(a.schema);
        for (attribute, (x, y)) in self.by.iter().zip(a.values.iter().zip(&b.values)) {
            order = order.then_with(|| match (attribute.ids[schema], x, y) {
                (Some(id), Some(x), Some(y)) if id != AttrId::OPEN => self.schemas[schema].compare_values(id, x, y),
                (_, Some(x), Some(y)) => x.cmp(y),
                (_, x, y) => x.is_none().cmp(&y.is_none()),
            });
        }
        order
    }

    fn count(&mut self, more: GroupCount) {
        if more.objects == 0 {
            return;
        }
        if let Some(group) = self.groups.get_mut(self.place.as_slice()) {
            group.objects += more.objects;
            group.bytes += more.bytes;
        } else if self.groups.len() < self.limit && self.value_bytes + self.place.len() <= VALUE_BYTES_MAX {
            self.value_bytes += self.place.len();
            self.groups.insert(self.place.as_slice().into(), more);
        } else {
            self.others.objects += more.objects;
            self.others.bytes += more.bytes;
        }
    }

    fn place_of(&mut self, object: &ObjectRow) {
        let mut values = [None; TallyRequest::ATTRIBUTES_MAX];
        for (value, attribute) in values.iter_mut().zip(&self.by) {
            *value = attribute.value(object.schema, object.record());
        }
        self.write_place(object.schema, &values[..self.by.len()]);
    }

    /// Writes the place of a group: the schema, and each value behind its length.
    fn write_place(&mut self, schema: u16, values: &[Option<&str>]) {
        self.place.clear();
        self.place.extend_from_slice(&schema.to_le_bytes());
        for value in values {
            let length = value.map_or(ABSENT, |value| value.len() as u32);
            self.place.extend_from_slice(&length.to_le_bytes());
            self.place.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
    }
}

/// The length of a value that is not there.
const ABSENT: u32 = u32::MAX;

/// Reads what [`TallyGroups::write_place`] has written.
fn read_place(place: &[u8]) -> (u16, Vec<Option<&str>>) {
    let Some((schema, mut rest)) = place.split_first_chunk() else {
        return (0, Vec::new());
    };
    let mut values = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        let (value, tail) = tail.split_at(if length == ABSENT { 0 } else { length as usize });
        values.push((length != ABSENT).then(|| std::str::from_utf8(value).unwrap_or_default()));
        rest = tail;
    }
    (u16::from_le_bytes(*schema), values)
}
