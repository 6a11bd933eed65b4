//! The requests of simulated clients: in meaning, for the reference model, and as bytes, for the core.

use std::rc::Rc;

use junctura_wire::body::{
    self, ArchivedBody, ArchivedObject, BundleRequest, ConsumerNames, DemandRequest, DrainRequest, FollowRequest,
    ForgetRequest, GroupTerms, Hello, LeaseRequest, ListRequest, RequireRequest, RetractRequest, SubscribeRequest,
    TargetBody, WantedRequest, WithdrawRequest,
};
use junctura_wire::fixed::{self, OfferHead, ReleasedHolding};
use junctura_wire::{Request, VERSION};

use crate::run::rng::Rng;
use crate::run::universe::{Order, Query, Universe};

/// The place of an offer's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the message.
    Inline,
    /// In a slot of a segment.
    Slot(u32, u32),
}

/// How long an object is to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// The schema's default.
    AsSchemaSays,
    /// Until it is withdrawn.
    UntilWithdrawn,
    /// Until so many have released it.
    UntilReleased(u32),
    /// So many milliseconds; for none, it has to fail.
    For(u32),
    /// Until the consumers of these names have had it, by the client's number for the names; an unassigned number must
    /// fail.
    By(u32),
    /// Until those have had it whose names have these bits. Clients have to number them first.
    ByNames(u8),
}

/// An offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The place of its key in [`Universe::keys`].
    pub key: usize,
    /// Attribute `size`.
    pub size: Option<i64>,
    /// Its record.
    pub record: Rc<[u8]>,
    /// The number that represents its bytes.
    pub payload: u64,
    /// Bytes of its payload.
    pub length: u64,
    /// Its place.
    pub place: Place,
    /// A checksum of its payload, which the pool hands on.
    pub checksum: Option<u32>,
    /// How long it is to stay.
    pub stays: Stays,
    /// Only if it is wanted.
    pub if_wanted: bool,
    /// It is answered once more when it is archived.
    pub durable: bool,
    /// The record is none, or there is no such schema: it has to fail.
    pub malformed: bool,
}

/// The target of a demand, withdraw or withdraw-all.
#[derive(Clone, Debug)]
pub enum Aim {
    /// The key with this place in [`Universe::keys`].
    Key(usize),
    /// The objects that this matches.
    Query(Query),
}

/// The point from which a follow resumes.
#[derive(Clone, Debug)]
pub struct Resume {
    /// As the client kept it.
    pub text: String,
    /// Of another incarnation: has to be refused.
    pub foreign: bool,
    /// The S of the earlier session, while in the first phase; else the last number received.
    pub since: u64,
    /// In the first phase: the key and the sort value of the last object.
    pub first: Option<(usize, Option<i64>)>,
}

/// The terms of a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The required objects.
    pub query: Query,
    /// Only the newest version of each key.
    pub newest_only: bool,
    /// How long a named one exists while no client uses it.
    pub time_to_live_ms: Option<u64>,
    /// It breaks rather than makes others wait.
    pub breaks_on_full: bool,
    /// Bytes that it may keep before it does.
    pub quota: Option<u64>,
    /// How long it may do nothing while others wait.
    pub stuck_after_ms: Option<u64>,
    /// Members share it.
    pub is_group: bool,
}

impl Terms {
    /// Returns the part of a group's terms that a follow states: not when it is broken.
    #[must_use]
    pub fn of_follow(&self) -> Self {
        Self {
            breaks_on_full: false,
            quota: None,
            stuck_after_ms: None,
            ..self.clone()
        }
    }

    /// Any terms, without a time to live.
    pub(crate) fn random(rng: &mut Rng, universe: &Universe) -> Self {
        let breaks_on_full = rng.percent(20);
        Self {
            query: Query::random(rng, universe, false),
            newest_only: rng.percent(30),
            time_to_live_ms: None,
            is_group: false,
            breaks_on_full,
            quota: (breaks_on_full && rng.percent(60)).then(|| rng.between(0, 2000)),
            stuck_after_ms: rng.percent(30).then(|| rng.between(1, 60)),
        }
    }

    /// The usual terms of each name of a run. No two times to live are the same.
    pub(crate) fn of_names(seed: u64, universe: &Universe) -> Vec<Self> {
        let mut rng = Rng::of_step(seed, u64::MAX - 2);
        let named = |name: u64| Self {
            time_to_live_ms: (name > 0).then(|| rng.between(1, 30) * 3 + name),
            is_group: rng.percent(50),
            ..Self::random(&mut rng, universe)
        };
        (0..3).map(named).collect()
    }
}

/// A member's share of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The place of its name.
    pub name: usize,
    /// The terms; `None`: those of the existing group.
    pub terms: Option<Terms>,
}

/// How an object is given back without a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// It was not seen.
    Unread,
    /// It was seen, and is not done.
    Undone,
}

/// The name of a requirement.
#[must_use]
pub fn requirement_name(name: usize) -> String {
    format!("requirement/{name}")
}

/// The number of names for which objects may be retained; the last one is never that of a requirement.
pub const NAMES: usize = 4;

/// The name of a program that a pool may be for.
#[must_use]
pub fn component_name(number: usize) -> String {
    format!("component {number}")
}

/// The paths of bundles in a run.
pub const BUNDLE_PATHS: [&str; 5] = ["a", "b", "a/c", "a/c/d", "b/e"];

/// A client's request. The fields are those of the messages in `junctura_wire`.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the messages in junctura-wire")]
pub enum Ask {
    /// First of all; the version may be wrong.
    Hello {
        wrong_version: bool,
        offer_timeout_ms: Option<u64>,
        visits: bool,
        component: Option<usize>,
    },
    /// See [`Offer`].
    Offer(Offer),
    /// Memory for a payload.
    Lease {
        bytes: u64,
        timeout_ms: Option<u64>,
        staged: bool,
    },
    /// A segment back.
    Return(u32),
    /// Whether an object is wanted.
    Wanted {
        key: usize,
        size: Option<i64>,
        record: Rc<[u8]>,
        declines: bool,
    },
    /// One object.
    Demand {
        aim: Aim,
        timeout_ms: Option<u64>,
        requirement: Option<u64>,
        name: Option<usize>,
    },
    /// Give up a request.
    Cancel(u64),
    /// Existing objects.
    List { query: Query, order: Order },
    /// The next page.
    More(u64),
    /// Existing and future objects.
    Follow {
        query: Query,
        order: Order,
        window: u32,
        cursor: Option<Resume>,
        only_new: bool,
        until_live: bool,
        requirement: Option<u64>,
        name: Option<usize>,
        group: Option<Share>,
    },
    /// Holdings and their sequence numbers.
    Release(Vec<(u32, u64)>),
    /// The same, of what is still read: its memory is held until it is released again.
    ReleaseMapped(Vec<(u32, u64)>),
    /// The same, for unread or unprocessed objects.
    GiveBack(Vec<(u32, u64)>, Back),
    /// Future needs.
    Require { terms: Terms, name: Option<usize> },
    /// The end of a requirement with a name.
    Retract(usize),
    /// Take a key out.
    Withdraw {
        key: usize,
        timeout_ms: Option<u64>,
        force: bool,
    },
    /// Take all that match out.
    WithdrawAll {
        query: Query,
        timeout_ms: Option<u64>,
        force: bool,
    },
    /// Free the keys of removed objects.
    Forget(Aim),
    /// Events.
    Subscribe { query: Query, events: u32 },
    /// End the pool in good order.
    Drain { timeout_ms: Option<u64> },
    /// End a follow, list, subscription or requirement.
    Stop(u64),
    /// Counters.
    Stat,
    /// A number for the names that have these bits.
    Consumers(u8),
    /// Open a bundle; its path is the place of one in [`BUNDLE_PATHS`].
    Bundle {
        path: Option<usize>,
        members: Option<u64>,
        orphan_ms: Option<u64>,
    },
    /// An offer into the bundle that this request has open.
    Stage { bundle: u64, offer: Offer },
    /// A bundle has all its members.
    Seal(u64),
    /// A bundle is given up.
    Abort(u64),
    /// Requests an answer when all earlier requests are in effect.
    Sync,
    /// Objects received through a named requirement are archived, or could not be.
    Archived {
        /// The place of the name.
        name: usize,
        /// Which.
        sequences: Vec<u64>,
        /// They could not.
        fails: bool,
    },
    /// Leave in good order.
    Goodbye,
    /// A frame that no server understands; one after which nothing can be understood when `fatal`.
    Garbage { fatal: bool },
}

impl Ask {
    /// As it travels.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one arm for each request")]
    pub fn encode(&self, number: u64, universe: &Universe) -> Vec<u8> {
        let mut out = Vec::new();
        let text;
        let request = match self {
            Self::Hello {
                wrong_version,
                offer_timeout_ms,
                visits,
                component,
            } => Request::Hello(Hello {
                version: VERSION + u16::from(*wrong_version),
                name: component.map_or_else(|| "simulated".to_owned(), component_name).into(),
                host: "nowhere".into(),
                pid: 1,
                schemas: Vec::new(),
                offer_timeout_ms: *offer_timeout_ms,
                ring_bytes: None,
                visits: *visits,
                route: None,
                rights: None,
                token: None,
            }),
            Self::Offer(offer) => {
                encode_offer(offer, None, number, universe, &mut out);
                return out;
            }
            Self::Stage { bundle, offer } => {
                encode_offer(offer, Some(*bundle), number, universe, &mut out);
                return out;
            }
            Self::Bundle {
                path,
                members,
                orphan_ms,
            } => Request::Bundle(BundleRequest {
                path: path.map(|at| BUNDLE_PATHS[at].into()),
                members: *members,
                orphan_timeout_ms: *orphan_ms,
                attributes: None,
            }),
            Self::Seal(which) => Request::Seal(*which),
            Self::Abort(which) => Request::Abort(*which),
            Self::Lease {
                bytes,
                timeout_ms,
                staged,
            } => Request::Lease(LeaseRequest {
                payload_bytes: *bytes,
                timeout_ms: *timeout_ms,
                staged: *staged,
            }),
            Self::Return(segment) => Request::Return(*segment),
            Self::Demand {
                aim,
                timeout_ms,
                requirement,
                name,
            } => Request::Demand(DemandRequest {
                target: target(aim, universe),
                timeout_ms: *timeout_ms,
                requirement: *requirement,
                requirement_name: name.map(|name| requirement_name(name).into()),
                incomplete: false,
            }),
            Self::Cancel(which) => Request::Cancel(*which),
            Self::List { query, order } => Request::List(ListRequest {
                selector: query.text().into(),
                order: wire_order(*order),
                incomplete: false,
                bundle: None,
            }),
            Self::More(which) => Request::More(*which),
            Self::Follow {
                query,
                order,
                window,
                cursor,
                only_new,
                until_live,
                requirement,
                name,
                group,
            } => Request::Follow(FollowRequest {
                selector: match group {
                    Some(Share { terms: Some(terms), .. }) => terms.query.text().into(),
                    _ => query.text().into(),
                },
                group: group.as_ref().map(|share| requirement_name(share.name).into()),
                group_terms: group
                    .as_ref()
                    .and_then(|share| share.terms.as_ref())
                    .map(|terms| GroupTerms {
                        newest_only: terms.newest_only,
                        time_to_live_ms: terms.time_to_live_ms,
                    }),
                order: wire_order(*order),
                window: *window,
                cursor: cursor.as_ref().map(|cursor| cursor.text.as_str().into()),
                only_new: *only_new,
                requirement: *requirement,
                until_live: *until_live,
                requirement_name: name.map(|name| requirement_name(name).into()),
            }),
            Self::Release(holdings) => {
                Request::Release(&wire_holdings(holdings, 0)).encode(number, &mut out);
                return out;
            }
            Self::ReleaseMapped(holdings) => {
                Request::Release(&wire_holdings(holdings, fixed::MAPPED)).encode(number, &mut out);
                return out;
            }
            Self::GiveBack(holdings, back) => {
                let flags = match back {
                    Back::Unread => fixed::UNREAD,
                    Back::Undone => fixed::UNDONE,
                };
                Request::Release(&wire_holdings(holdings, flags)).encode(number, &mut out);
                return out;
            }
            Self::Require { terms, name } => Request::Require(RequireRequest {
                selector: terms.query.text().into(),
                newest_only: terms.newest_only,
                name: name.map(|name| requirement_name(name).into()),
                time_to_live_ms: terms.time_to_live_ms,
                group: terms.is_group,
                breaks_on_full: terms.breaks_on_full,
                quota_bytes: terms.quota,
                stuck_after_ms: terms.stuck_after_ms,
            }),
            Self::Wanted {
                key, record, declines, ..
            } => Request::Wanted(WantedRequest {
                schema: universe.keys[*key].schema,
                record: record[..].into(),
                declines: *declines,
            }),
            Self::Retract(name) => Request::Retract(RetractRequest {
                name: requirement_name(*name).into(),
            }),
            Self::Withdraw { key, timeout_ms, force } => {
                let target = target(&Aim::Key(*key), universe);
                Request::Withdraw(WithdrawRequest {
                    target,
                    timeout_ms: *timeout_ms,
                    force: *force,
                })
            }
            Self::WithdrawAll {
                query,
                timeout_ms,
                force,
            } => {
                text = query.text();
                let target = TargetBody::selector(&text);
                Request::WithdrawAll(WithdrawRequest {
                    target,
                    timeout_ms: *timeout_ms,
                    force: *force,
                })
            }
            Self::Forget(aim) => Request::Forget(ForgetRequest {
                target: target(aim, universe),
            }),
            Self::Subscribe { query, events } => Request::Subscribe(SubscribeRequest {
                selector: query.text().into(),
                events: *events,
            }),
            Self::Drain { timeout_ms } => Request::Drain(DrainRequest {
                timeout_ms: *timeout_ms,
            }),
            Self::Stop(which) => Request::Stop(*which),
            Self::Stat => Request::Stat,
            Self::Consumers(bits) => Request::Consumers(ConsumerNames {
                names: (0..NAMES)
                    .filter(|at| bits & 1 << at != 0)
                    .map(requirement_name)
                    .collect(),
            }),
            Self::Sync => Request::Sync,
            Self::Archived { name, sequences, fails } => {
                let object = |&sequence: &u64| ArchivedObject {
                    sequence,
                    location: "there".into(),
                };
                Request::Archived(ArchivedBody {
                    requirement: requirement_name(*name).into(),
                    objects: sequences.iter().map(object).collect(),
                    failure: fails.then(|| "the disk is full".into()),
                })
            }
            Self::Goodbye => Request::Goodbye,
            Self::Garbage { fatal } => {
                Request::Stat.encode(number, &mut out);
                // An unknown kind; or a demand without a body.
                out[4] = if *fatal { 5 } else { 63 };
                return out;
            }
        };
        request.encode(number, &mut out);
        out
    }
}

fn target<'a>(aim: &Aim, universe: &'a Universe) -> TargetBody<'a> {
    match aim {
        Aim::Key(key) => {
            let key = &universe.keys[*key];
            TargetBody::key(key.schema, &key.record)
        }
        Aim::Query(query) => TargetBody::Selector(query.text().into()),
    }
}

fn wire_order(order: Order) -> body::ListOrder<'static> {
    order
        .attribute()
        .map_or(body::ListOrder::Key, |name| body::ListOrder::Attribute(name.into()))
}

/// The bytes of an inline payload: its number, repeated.
#[must_use]
pub fn payload_bytes(payload: u64, length: u64) -> Vec<u8> {
    payload
        .to_le_bytes()
        .into_iter()
        .cycle()
        .take(length as usize)
        .collect()
}

fn wire_holdings(holdings: &[(u32, u64)], flags: u32) -> Vec<ReleasedHolding> {
    let wire = |&(holding, sequence): &(u32, u64)| ReleasedHolding {
        holding: holding.into(),
        flags: flags.into(),
        sequence: sequence.into(),
    };
    holdings.iter().map(wire).collect()
}

fn encode_offer(offer: &Offer, bundle: Option<u64>, number: u64, universe: &Universe, out: &mut Vec<u8>) {
    let (inline, segment, slot) = match offer.place {
        Place::Inline => (payload_bytes(offer.payload, offer.length), 0, 0),
        Place::Slot(segment, slot) => (Vec::new(), segment, slot),
    };
    let mut flags = 0;
    if offer.place == Place::Inline {
        flags |= fixed::INLINE;
    }
    if offer.checksum.is_some() {
        flags |= fixed::CHECKSUM;
    }
    if offer.if_wanted {
        flags |= fixed::IF_WANTED;
    }
    if offer.durable {
        flags |= fixed::DURABLE;
    }
    let releases = match offer.stays {
        Stays::AsSchemaSays => {
            flags |= fixed::DEFAULT_RETENTION;
            7
        }
        // Clients do not send names, but their number.
        Stays::UntilWithdrawn | Stays::ByNames(_) => 0,
        Stays::UntilReleased(count) => count,
        Stays::For(milliseconds) => {
            flags |= fixed::FOR_A_TIME;
            milliseconds
        }
        Stays::By(number) => {
            flags |= fixed::BY_CONSUMERS;
            number
        }
    };
    let record: &[u8] = if offer.malformed {
        &offer.record[1..]
    } else {
        &offer.record
    };
    let head = OfferHead {
        schema: universe.keys[offer.key].schema.into(),
        flags: flags.into(),
        releases: releases.into(),
        record_length: (record.len() as u32).into(),
        checksum: offer.checksum.unwrap_or(0).into(),
        segment: segment.into(),
        slot: slot.into(),
        length: offer.length.into(),
    };
    let inline = inline.as_slice();
    match bundle {
        None => Request::Offer { head, record, inline },
        Some(bundle) => Request::Stage {
            bundle,
            head,
            record,
            inline,
        },
    }
    .encode(number, out);
}
