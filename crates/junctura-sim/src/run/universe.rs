//! The data of the simulated clients: two schemas, a few keys of each, and selectors over them.
//!
//! A [`Query`] is a selector that this crate can answer by itself: [`Query::text`] is the text that a client sends, and
//! [`Query::matches`] is its meaning in the reference model, without the parser or the index of the model crate.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use junctura_model::{Given, RecordRef, Result, Schema};

use crate::clients::requests::Stays;
use crate::run::rng::Rng;

/// The schema whose keys are offered once, another offer being refused, and whose objects stay, by default, for a time in
/// one dataset, and for two names in the other.
pub const ONCE: u16 = 0;
/// The schema whose keys are superseded by another offer, and whose objects end with their first release by default.
pub const AGAIN: u16 = 1;

const ONCE_YAML: &str = "
name: once
same_key: reject
retention: {for: 30ms}
retention_by_dataset: [{where: d=b, retention: {released_by: [requirement/0, requirement/2]}}]
key: {dataset: [d], collocation: [t], element: [n]}
attributes:
  d: {type: string}
  t: {type: integer}
  n: {type: integer}
  size: {type: integer}
";

const AGAIN_YAML: &str = "
name: again
same_key: supersede
retention: {released: 1}
key: {dataset: [d], collocation: [t], element: [m]}
attributes:
  d: {type: string}
  t: {type: integer}
  m: {type: integer}
  size: {type: integer}
";

/// How long an object of this schema and dataset stays that was offered with its schema's default.
#[must_use]
pub fn default_stay(schema: u16, dataset: u8) -> Stays {
    match (schema, dataset) {
        (AGAIN, _) => Stays::UntilReleased(1),
        (_, 0) => Stays::For(30),
        _ => Stays::ByNames(0b101),
    }
}

/// One possible key.
#[derive(Clone, Debug)]
pub struct Key {
    /// [`ONCE`] or [`AGAIN`].
    pub schema: u16,
    /// Attribute `d`: 0 is `a`, 1 is `b`.
    pub dataset: u8,
    /// Attribute `t`.
    pub time: i64,
    /// Attribute `n` or `m`.
    pub number: i64,
    /// The record of the key's attributes.
    pub record: Rc<[u8]>,
    /// The canonical text.
    pub text: String,
}

/// All schemas and keys of a run.
pub struct Universe {
    /// [`ONCE`], [`AGAIN`].
    pub schemas: Vec<Arc<Schema>>,
    /// Every key that may be offered.
    pub keys: Vec<Key>,
    /// Values of `t` are below it.
    pub times: i64,
    /// Values of `n` and `m` are below it.
    pub numbers: i64,
}

impl Universe {
    /// Keys with so many values of each attribute.
    ///
    /// # Errors
    /// What the model crate has against the schemas or the records; a fault of this crate.
    pub fn new(times: i64, numbers: i64) -> Result<Self> {
        let schemas = [ONCE_YAML, AGAIN_YAML].map(|text| Schema::parse_yaml(text).map(Arc::new));
        let schemas = schemas.into_iter().collect::<Result<Vec<_>>>()?;
        let mut universe = Self {
            schemas,
            keys: Vec::new(),
            times,
            numbers,
        };
        for schema in [ONCE, AGAIN] {
            for (dataset, time, number) in
                (0..2).flat_map(|d| (0..times).flat_map(move |t| (0..numbers).map(move |n| (d, t, n))))
            {
                let mut key = Key {
                    schema,
                    dataset,
                    time,
                    number,
                    record: Rc::from([]),
                    text: String::new(),
                };
                key.record = universe.record(&key, None)?;
                universe.schemas[usize::from(schema)].key_of(RecordRef::trusted(&key.record), &mut key.text);
                universe.keys.push(key);
            }
        }
        Ok(universe)
    }

    /// The record of an object.
    ///
    /// # Errors
    /// What the model crate has against it.
    pub fn record(&self, key: &Key, size: Option<i64>) -> Result<Rc<[u8]>> {
        let mut out = Vec::new();
        let last = if key.schema == ONCE { "n" } else { "m" };
        let mut given = vec![
            ("d", Given::Text(dataset_text(key.dataset))),
            ("t", Given::Integer(key.time)),
            (last, Given::Integer(key.number)),
        ];
        given.extend(size.map(|size| ("size", Given::Integer(size))));
        self.schemas[usize::from(key.schema)].record(given, &mut out)?;
        Ok(out.into())
    }
}

fn dataset_text(dataset: u8) -> &'static str {
    ["a", "b"][usize::from(dataset & 1)]
}

/// A selector.
#[derive(Clone, Debug)]
pub enum Query {
    /// Everything.
    All,
    /// `d=a`
    Dataset(u8),
    /// `d!=a`
    NotDataset(u8),
    /// `d~a`
    Like(u8),
    /// `t=1/to/3`
    Times(i64, i64),
    /// `t>=2`
    Since(i64),
    /// `n=1/4/5`, which only [`ONCE`] knows.
    Numbers(Vec<i64>),
    /// `m=1/4/5`, which only [`AGAIN`] knows.
    Members(Vec<i64>),
    /// `exists(size)`
    Sized,
    /// `not(exists(size))`
    NotSized,
    /// `size=1/2`
    Sizes(Vec<i64>),
    /// Both queries.
    Both(Box<Query>, Box<Query>),
}

impl PartialEq for Query {
    /// Whether both match the same: consecutive equal queries are sent once.
    fn eq(&self, other: &Self) -> bool {
        self.once().text() == other.once().text()
    }
}

impl Eq for Query {}

impl Query {
    fn once(&self) -> &Self {
        match self {
            Self::Both(one, same) if one == same => one,
            _ => self,
        }
    }

    /// One at random; `indexed` leaves out those that no index helps with.
    pub fn random(rng: &mut Rng, universe: &Universe, indexed: bool) -> Self {
        let simple = |rng: &mut Rng| {
            let some = |rng: &mut Rng, of: i64| {
                let count = rng.between(1, 3);
                (0..count).map(|_| rng.below(of as usize) as i64).collect::<Vec<_>>()
            };
            match rng.below(if indexed { 9 } else { 13 }) {
                0 | 1 => Self::All,
                2 | 3 => Self::Dataset(rng.below(2) as u8),
                4 => {
                    let low = rng.below(universe.times as usize) as i64;
                    Self::Times(low, low + rng.below(3) as i64)
                }
                5 => Self::Numbers(some(rng, universe.numbers)),
                6 | 7 => Self::Members(some(rng, universe.numbers)),
                8 => Self::Sizes(some(rng, 4)),
                9 => Self::Since(rng.below(universe.times as usize) as i64),
                10 => Self::NotDataset(rng.below(2) as u8),
                11 => Self::Like(rng.below(2) as u8),
                _ => [Self::Sized, Self::NotSized][rng.below(2)].clone(),
            }
        };
        let first = simple(rng);
        if !rng.percent(30) {
            return first;
        }
        let second = simple(rng);
        match (&first, &second) {
            (Self::All, _) => second,
            // No schema knows both: the pool refuses it.
            (Self::Numbers(_), Self::Members(_)) | (Self::Members(_), Self::Numbers(_)) | (_, Self::All) => first,
            _ => Self::Both(Box::new(first), Box::new(second)),
        }
    }

    /// As a client writes it.
    #[must_use]
    pub fn text(&self) -> String {
        let list = |numbers: &[i64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join("/");
        match self {
            Self::All => "*".to_owned(),
            Self::Dataset(d) => format!("d={}", dataset_text(*d)),
            Self::NotDataset(d) => format!("d!={}", dataset_text(*d)),
            Self::Like(d) => format!("d~{}", dataset_text(*d)),
            Self::Times(low, high) => format!("t={low}/to/{high}"),
            Self::Since(low) => format!("t>={low}"),
            Self::Numbers(numbers) => format!("n={}", list(numbers)),
            Self::Members(numbers) => format!("m={}", list(numbers)),
            Self::Sized => "exists(size)".to_owned(),
            Self::NotSized => "not(exists(size))".to_owned(),
            Self::Sizes(sizes) => format!("size={}", list(sizes)),
            Self::Both(one, other) => format!("{},{}", one.text(), other.text()),
        }
    }

    /// Whether it asks for attributes of the key only.
    #[must_use]
    pub fn is_about_keys(&self) -> bool {
        match self {
            Self::Sized | Self::NotSized | Self::Sizes(_) => false,
            Self::Both(one, other) => one.is_about_keys() && other.is_about_keys(),
            _ => true,
        }
    }

    /// Whether it matches an object.
    #[must_use]
    pub fn matches(&self, key: &Key, size: Option<i64>) -> bool {
        match self {
            Self::All => true,
            Self::Dataset(d) | Self::Like(d) => key.dataset == *d,
            Self::NotDataset(d) => key.dataset != *d,
            Self::Times(low, high) => (*low..=*high).contains(&key.time),
            Self::Since(low) => key.time >= *low,
            Self::Numbers(numbers) => key.schema == ONCE && numbers.contains(&key.number),
            Self::Members(numbers) => key.schema == AGAIN && numbers.contains(&key.number),
            Self::Sized => size.is_some(),
            Self::NotSized => size.is_none(),
            Self::Sizes(sizes) => size.is_some_and(|size| sizes.contains(&size)),
            Self::Both(one, other) => one.matches(key, size) && other.matches(key, size),
        }
    }
}

/// In which order what is there is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By key.
    Key,
    /// By `size`, then by key.
    Size,
    /// By `n`, then by key; objects of [`AGAIN`] have none and are last.
    Number,
}

impl Order {
    /// The attribute's name.
    #[must_use]
    pub fn attribute(self) -> Option<&'static str> {
        match self {
            Self::Key => None,
            Self::Size => Some("size"),
            Self::Number => Some("n"),
        }
    }

    /// The value that an object is sorted by, before its key.
    #[must_use]
    pub fn value(self, key: &Key, size: Option<i64>) -> Option<i64> {
        match self {
            Self::Key => None,
            Self::Size => size,
            Self::Number => (key.schema == ONCE).then_some(key.number),
        }
    }

    /// Compares two objects, each given as its key and its sort value. Objects without a value are last.
    #[must_use]
    pub fn compare(self, a: (&Key, Option<i64>), b: (&Key, Option<i64>)) -> Ordering {
        let by_value = match (a.1, b.1) {
            (Some(x), Some(y)) => x.cmp(&y),
            (x, y) => x.is_none().cmp(&y.is_none()),
        };
        let key = |key: &Key| (key.schema, key.dataset, key.time, key.number);
        by_value.then_with(|| key(a.0).cmp(&key(b.0)))
    }
}
