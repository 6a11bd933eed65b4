//! One example of every request and reply, built from a handful of words: fixed ones for the golden bytes, arbitrary ones
//! for the properties.

mod reasons;

use std::borrow::Cow;

use junctura_wire::body::{
    ArchivedBody, ArchivedObject, BundleAttributes, BundlePeer, BundleRequest, BundleStatus, BundlesPage,
    BundlesRequest, ConsumerNames, DemandRequest, DrainRequest, EventBody, FollowRequest, ForgetRequest, GapBody,
    GroupTerms, Hello, LeaseRequest, ListOrder, ListRequest, NoteRequest, ObjectName, PackBody, PeerBody, PieceName,
    RequireRequest, RequirementName, RetractRequest, SubscribeRequest, TargetBody, WantedRequest, Welcome, WireFailure,
    WithdrawRequest,
};
use junctura_wire::fixed::{
    self, BoardPageHead, CompletedHead, DeliveredHead, ListedHead, MemberVersion, OfferHead, PackedHead,
    ReleasedHolding, RingsHead, SegmentHead, SlotAddress,
};
use junctura_wire::look::{ListPosition, TalliedBody, TalliedGroup, TallyRequest};
use junctura_wire::reasons::{ExplainRequest, KeepersPlace, KeepersRequest, WaitPlace, WaitsRequest};
use junctura_wire::{ListedPage, Reply, Request};
use zerocopy::IntoBytes;

/// What examples are built from.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// Names, hosts, selectors, causes.
    pub(crate) texts: [String; 4],
    /// Texts of schemas.
    pub(crate) schemas: Vec<String>,
    /// Sequence numbers, lengths, request numbers.
    pub(crate) longs: [u64; 4],
    /// Processes, clients, segments, slots, holdings.
    pub(crate) ints: [u32; 6],
    /// Schemas, codes.
    pub(crate) shorts: [u16; 2],
    /// What may be there or not.
    pub(crate) maybe: Option<u64>,
    /// Switches.
    pub(crate) flags: [bool; 2],
    /// A record.
    pub(crate) record: Vec<u8>,
    /// A payload.
    pub(crate) payload: Vec<u8>,
    /// Objects released, freed, listed.
    pub(crate) holdings: Vec<ReleasedHolding>,
    /// Slots.
    pub(crate) slots: Vec<SlotAddress>,
    /// Members of a bundle.
    pub(crate) members: Vec<MemberVersion>,
    /// A page of a list.
    pub(crate) page: Vec<u8>,
}

impl Words {
    /// The words of the golden bytes.
    pub(crate) fn example() -> Self {
        let record = b"\x00\x02\x00od\x01\x01\x00t".to_vec();
        let mut page = Vec::new();
        for sequence in [41, 42] {
            let head = ListedHead {
                sequence: sequence.into(),
                schema: 1.into(),
                record_length: (record.len() as u32).into(),
                length: 823_296.into(),
                ..ListedHead::default()
            };
            page.extend_from_slice(head.as_bytes());
            page.extend_from_slice(&record);
        }
        Self {
            texts: ["regrid", "node7", "class=od,param=t", "withdrawn"].map(str::to_owned),
            schemas: vec!["name: mars\n".to_owned(), "name: free\n".to_owned()],
            longs: [42, 823_296, 7, 1 << 40],
            ints: [4_711, 3, 5, 9, 77, 64],
            shorts: [1, 8],
            maybe: Some(2_500),
            flags: [true, false],
            record,
            payload: b"GRIB".to_vec(),
            holdings: [
                (77, 0, 42),
                (78, fixed::UNREAD, 43),
                (79, fixed::UNDONE | fixed::MAPPED, 44),
            ]
            .map(|(holding, flags, sequence)| ReleasedHolding {
                holding: u32::into(holding),
                flags: u32::into(flags),
                sequence: u64::into(sequence),
            })
            .to_vec(),
            slots: [(5, 9), (5, 10)]
                .map(|(segment, slot)| SlotAddress {
                    segment: u32::into(segment),
                    slot: u32::into(slot),
                })
                .to_vec(),
            members: vec![MemberVersion {
                request: 7.into(),
                sequence: 42.into(),
            }],
            page,
        }
    }

    fn text(&self, at: usize) -> Cow<'_, str> {
        Cow::Borrowed(&self.texts[at])
    }

    fn key(&self) -> TargetBody<'_> {
        TargetBody::key(self.shorts[0], &self.record)
    }

    fn object(&self) -> ObjectName<'_> {
        ObjectName {
            schema: self.shorts[0],
            sequence: self.longs[0],
            record: Cow::Borrowed(&self.record),
        }
    }

    fn about(&self) -> BundleAttributes<'_> {
        BundleAttributes {
            schema: self.shorts[0],
            record: Cow::Borrowed(&self.record),
        }
    }

    fn offer_head(&self, flags: u16, length: u64) -> OfferHead {
        OfferHead {
            schema: self.shorts[0].into(),
            flags: flags.into(),
            releases: self.ints[1].into(),
            record_length: (self.record.len() as u32).into(),
            checksum: self.ints[4].into(),
            segment: self.ints[2].into(),
            slot: self.ints[3].into(),
            length: length.into(),
        }
    }

    fn delivered_head(&self, flags: u16, length: u64) -> DeliveredHead {
        DeliveredHead {
            sequence: self.longs[0].into(),
            schema: self.shorts[0].into(),
            flags: flags.into(),
            record_length: (self.record.len() as u32).into(),
            checksum: self.ints[4].into(),
            producer: self.ints[1].into(),
            segment: self.ints[2].into(),
            slot: self.ints[3].into(),
            length: length.into(),
            holding: self.ints[5].into(),
            rest: 0.into(),
        }
    }

    fn failure(&self) -> WireFailure<'_> {
        WireFailure {
            code: self.shorts[1],
            subject: self.text(2),
            cause: self.text(3),
            position: self.maybe,
        }
    }
}

/// Requests of every kind, each with a name for the golden file.
#[allow(clippy::too_many_lines, reason = "a list of examples")]
pub(crate) fn requests(words: &Words) -> Vec<(&'static str, Request<'_>)> {
    let [sequence, length, number, _] = words.longs;
    let timeout_ms = words.maybe;
    let withdraw = |target| WithdrawRequest {
        target,
        timeout_ms,
        force: words.flags[1],
    };
    vec![
        (
            "hello",
            Request::Hello(Hello {
                version: junctura_wire::VERSION,
                name: words.text(0),
                host: words.text(1),
                pid: words.ints[0],
                schemas: words.schemas.clone(),
                offer_timeout_ms: timeout_ms,
                ring_bytes: words.flags[0].then_some(words.ints[0]),
                visits: words.flags[1],
                route: words.flags[1].then(|| words.text(0)),
                rights: words.flags[0].then_some(words.ints[1] as u8),
                token: words.flags[0].then_some(words.ints[2]),
            }),
        ),
        (
            "offer-slot",
            Request::Offer {
                head: words.offer_head(0, length),
                record: &words.record,
                inline: &[],
            },
        ),
        (
            "offer-inline",
            Request::Offer {
                head: words.offer_head(
                    fixed::INLINE | fixed::CHECKSUM | fixed::DEFAULT_RETENTION,
                    words.payload.len() as u64,
                ),
                record: &words.record,
                inline: &words.payload,
            },
        ),
        (
            "offer-for-a-time",
            Request::Offer {
                head: words.offer_head(fixed::INLINE | fixed::FOR_A_TIME, words.payload.len() as u64),
                record: &words.record,
                inline: &words.payload,
            },
        ),
        (
            "lease",
            Request::Lease(LeaseRequest {
                payload_bytes: length,
                timeout_ms,
                staged: words.flags[1],
            }),
        ),
        ("return", Request::Return(words.ints[2])),
        (
            "demand-key",
            Request::Demand(DemandRequest {
                target: words.key(),
                timeout_ms,
                requirement: None,
                requirement_name: None,
                incomplete: words.flags[1],
            }),
        ),
        (
            "demand-selector",
            Request::Demand(DemandRequest {
                target: TargetBody::selector(&words.texts[2]),
                timeout_ms: None,
                requirement: Some(number),
                requirement_name: None,
                incomplete: words.flags[1],
            }),
        ),
        (
            "demand-named",
            Request::Demand(DemandRequest {
                target: words.key(),
                timeout_ms: None,
                requirement: None,
                requirement_name: Some(words.text(0)),
                incomplete: words.flags[0],
            }),
        ),
        ("cancel", Request::Cancel(number)),
        (
            "list-by-key",
            Request::List(ListRequest {
                selector: words.text(2),
                order: ListOrder::Key,
                incomplete: words.flags[1],
                bundle: None,
                limit: None,
                after: None,
            }),
        ),
        (
            "list-by-attribute",
            Request::List(ListRequest {
                selector: words.text(2),
                order: ListOrder::Attribute(words.text(0)),
                incomplete: words.flags[0],
                bundle: Some(words.text(1)),
                limit: None,
                after: None,
            }),
        ),
        (
            "list-first",
            Request::List(ListRequest {
                selector: words.text(2),
                limit: Some(length),
                after: Some(ListPosition {
                    schema: words.shorts[0],
                    record: Cow::Borrowed(&words.record),
                }),
                ..ListRequest::default()
            }),
        ),
        (
            "follow",
            Request::Follow(FollowRequest {
                selector: words.text(2),
                order: ListOrder::Key,
                window: words.ints[5],
                cursor: Some(words.text(3)),
                only_new: words.flags[0],
                requirement: Some(number),
                until_live: words.flags[1],
                ..FollowRequest::default()
            }),
        ),
        (
            "follow-named",
            Request::Follow(FollowRequest {
                selector: "".into(),
                order: ListOrder::Key,
                window: words.ints[5],
                cursor: None,
                only_new: words.flags[1],
                requirement: None,
                until_live: words.flags[1],
                requirement_name: Some(words.text(0)),
                ..FollowRequest::default()
            }),
        ),
        (
            "follow-group",
            Request::Follow(FollowRequest {
                selector: words.text(2),
                window: words.ints[5],
                group: Some(words.text(0)),
                group_terms: Some(GroupTerms {
                    newest_only: words.flags[0],
                    time_to_live_ms: timeout_ms,
                }),
                ..FollowRequest::default()
            }),
        ),
        (
            "follow-standing-group",
            Request::Follow(FollowRequest {
                window: words.ints[5],
                group: Some(words.text(0)),
                ..FollowRequest::default()
            }),
        ),
        ("more", Request::More(number)),
        ("release", Request::Release(&words.holdings)),
        (
            "require",
            Request::Require(RequireRequest {
                selector: words.text(2),
                newest_only: words.flags[0],
                ..RequireRequest::default()
            }),
        ),
        (
            "require-named",
            Request::Require(RequireRequest {
                selector: words.text(2),
                newest_only: words.flags[1],
                name: Some(words.text(0)),
                ..RequireRequest::default()
            }),
        ),
        (
            "require-for-a-time",
            Request::Require(RequireRequest {
                selector: words.text(2),
                newest_only: words.flags[1],
                name: Some(words.text(0)),
                time_to_live_ms: timeout_ms,
                ..RequireRequest::default()
            }),
        ),
        (
            "require-to-break",
            Request::Require(RequireRequest {
                selector: words.text(2),
                breaks_on_full: words.flags[1],
                quota_bytes: Some(length),
                stuck_after_ms: timeout_ms,
                ..RequireRequest::default()
            }),
        ),
        (
            "require-group",
            Request::Require(RequireRequest {
                selector: words.text(2),
                name: Some(words.text(0)),
                group: words.flags[0],
                ..RequireRequest::default()
            }),
        ),
        ("withdraw", Request::Withdraw(withdraw(words.key()))),
        (
            "withdraw-all",
            Request::WithdrawAll(withdraw(TargetBody::selector(&words.texts[2]))),
        ),
        (
            "subscribe",
            Request::Subscribe(SubscribeRequest {
                selector: words.text(2),
                events: words.ints[5],
            }),
        ),
        ("stop", Request::Stop(sequence)),
        ("stat", Request::Stat),
        ("goodbye", Request::Goodbye),
        ("retract", Request::Retract(RetractRequest { name: words.text(0) })),
        (
            "forget",
            Request::Forget(ForgetRequest {
                target: TargetBody::Selector(words.text(2)),
            }),
        ),
        (
            "wanted",
            Request::Wanted(WantedRequest {
                schema: 1,
                record: (&*words.record).into(),
                declines: words.flags[0],
            }),
        ),
        ("drain", Request::Drain(DrainRequest { timeout_ms })),
        (
            "bundle",
            Request::Bundle(BundleRequest {
                path: Some(words.text(0)),
                members: timeout_ms,
                orphan_timeout_ms: timeout_ms,
                attributes: Some(words.about()),
            }),
        ),
        ("bundle-unnamed", Request::Bundle(BundleRequest::default())),
        ("seal", Request::Seal(number)),
        ("abort", Request::Abort(number)),
        (
            "stage-slot",
            Request::Stage {
                bundle: number,
                head: words.offer_head(0, length),
                record: &words.record,
                inline: &[],
            },
        ),
        (
            "stage-inline",
            Request::Stage {
                bundle: number,
                head: words.offer_head(fixed::INLINE, words.payload.len() as u64),
                record: &words.record,
                inline: &words.payload,
            },
        ),
        (
            "bundles",
            Request::Bundles(BundlesRequest {
                selector: words.text(2),
                path: Some(words.text(0)),
                after: number,
            }),
        ),
        (
            "consumers",
            Request::Consumers(ConsumerNames {
                names: words.schemas.clone(),
            }),
        ),
        ("sync", Request::Sync),
        (
            "archived",
            Request::Archived(ArchivedBody {
                requirement: words.text(0),
                objects: vec![ArchivedObject {
                    sequence,
                    location: words.text(1),
                }],
                failure: None,
            }),
        ),
        (
            "unarchived",
            Request::Archived(ArchivedBody {
                requirement: words.text(0),
                objects: vec![ArchivedObject {
                    sequence,
                    ..ArchivedObject::default()
                }],
                failure: Some(words.text(3)),
            }),
        ),
        (
            "pack",
            Request::Pack(PackBody {
                from: words.text(0),
                to: words.text(1),
                origin: vec![sequence, number],
                rank: number,
                element: words.text(2),
                travels: words.text(3),
                pieces: vec![PieceName {
                    rank: sequence,
                    target: TargetBody::key(words.shorts[0], &words.record),
                }],
            }),
        ),
        (
            "tally",
            Request::Tally(TallyRequest {
                selector: words.text(2),
                by: vec![words.text(0), words.text(1)],
                limit: words.ints[1],
                bytes: words.flags[0],
                filed_only: words.flags[1],
            }),
        ),
        (
            "waits",
            Request::Waits(WaitsRequest {
                after: words.maybe.map(|request| WaitPlace {
                    client: words.ints[1],
                    request,
                }),
                limit: words.ints[2],
            }),
        ),
        (
            "explain",
            Request::Explain(ExplainRequest {
                target: words.key(),
                sequence: words.maybe,
            }),
        ),
        (
            "keepers",
            Request::Keepers(KeepersRequest {
                after: words.maybe.map(|row| KeepersPlace {
                    client: words.ints[1],
                    row,
                }),
            }),
        ),
        ("board", Request::Board),
        ("note", Request::Note(NoteRequest { text: words.text(3) })),
    ]
}

/// Replies of every kind, each with a name for the golden file.
#[expect(clippy::too_many_lines, reason = "one entry for each kind")]
pub(crate) fn replies(words: &Words) -> Vec<(&'static str, Reply<'_>)> {
    let [sequence, length, number, incarnation] = words.longs;
    let [pid, client, segment, ..] = words.ints;
    let peer = PeerBody {
        client,
        name: words.text(0),
        host: words.text(1),
        pid,
        offered: sequence,
    };
    vec![
        (
            "welcome",
            Reply::Welcome(Welcome {
                version: junctura_wire::VERSION,
                incarnation,
                client,
                schemas: words.schemas.clone(),
                inline_bytes_max: number,
                payload_bytes_max: length,
                checked: words.flags[0],
                pid,
                host: words.text(1),
                packs: words.flags[1],
                keeps_mapped: words.flags[0],
            }),
        ),
        ("failed", Reply::Failed(words.failure())),
        ("offered", Reply::Offered(sequence)),
        (
            "segment",
            Reply::Segment(SegmentHead {
                segment: segment.into(),
                writable: 1.into(),
                bytes: incarnation.into(),
                slot_bytes: length.into(),
            }),
        ),
        ("freed", Reply::Freed(&words.slots)),
        (
            "delivered-slot",
            Reply::Delivered {
                head: words.delivered_head(0, length),
                record: &words.record,
                inline: &[],
            },
        ),
        (
            "delivered-inline",
            Reply::Delivered {
                head: words.delivered_head(fixed::INLINE | fixed::FIRST_PHASE, words.payload.len() as u64),
                record: &words.record,
                inline: &words.payload,
            },
        ),
        (
            "delivered-again",
            Reply::Delivered {
                head: words.delivered_head(fixed::REDELIVERED, length),
                record: &words.record,
                inline: &[],
            },
        ),
        ("live", Reply::Live),
        (
            "gap",
            Reply::Gap(GapBody {
                items: vec![words.object(), words.object()],
                reason: words.text(3),
                unnamed: None,
            }),
        ),
        (
            "gap-unnamed",
            Reply::Gap(GapBody {
                items: Vec::new(),
                reason: words.text(3),
                unnamed: Some(length),
            }),
        ),
        (
            "listed",
            Reply::Listed(ListedPage {
                last: false,
                entries: &words.page,
            }),
        ),
        (
            "listed-last",
            Reply::Listed(ListedPage {
                last: true,
                entries: &[],
            }),
        ),
        (
            "event-offered",
            Reply::Event(EventBody {
                event: junctura_wire::body::events::OFFERED,
                object: Some(words.object()),
                length,
                client: Some(peer.clone()),
                reason: "".into(),
                requirement: None,
                bundle: None,
                location: None,
            }),
        ),
        (
            "event-archived",
            Reply::Event(EventBody {
                event: junctura_wire::body::events::ARCHIVED,
                object: Some(words.object()),
                length,
                location: Some(words.text(1)),
                ..EventBody::default()
            }),
        ),
        (
            "event-left",
            Reply::Event(EventBody {
                event: junctura_wire::body::events::LEFT,
                object: None,
                length: 0,
                client: Some(peer.clone()),
                reason: words.text(3),
                requirement: None,
                bundle: None,
                location: None,
            }),
        ),
        (
            "event-required",
            Reply::Event(EventBody {
                event: junctura_wire::body::events::REQUIRED,
                object: None,
                length: 0,
                client: Some(peer),
                reason: "".into(),
                requirement: Some(RequirementName {
                    name: words.text(0),
                    selector: words.text(2),
                }),
                bundle: None,
                location: None,
            }),
        ),
        (
            "event-aborted",
            Reply::Event(EventBody {
                event: junctura_wire::body::events::ABORTED,
                object: None,
                length: 0,
                client: None,
                reason: words.text(3),
                requirement: None,
                bundle: Some(BundlePeer {
                    path: Some(words.text(0)),
                    members: number,
                    declared: words.maybe,
                }),
                location: None,
            }),
        ),
        ("done", Reply::Done(sequence)),
        ("stats", Reply::Stats("{\"objects\":42}")),
        ("recall", Reply::Recall(segment)),
        ("dropped", Reply::Dropped(segment)),
        ("began", Reply::Began(sequence)),
        ("ended", Reply::Ended(words.failure())),
        (
            "rings",
            Reply::Rings(RingsHead {
                part: segment.into(),
                ring_bytes: pid.into(),
            }),
        ),
        (
            "completed",
            Reply::Completed {
                head: CompletedHead {
                    first: sequence.into(),
                    objects: number.into(),
                    ..CompletedHead::default()
                },
                members: &words.members,
            },
        ),
        (
            "bundled",
            Reply::Bundled(BundlesPage {
                last: words.flags[0],
                items: vec![BundleStatus {
                    number,
                    path: Some(words.text(0)),
                    state: 2,
                    declared: words.maybe,
                    members: number,
                    bytes: length,
                    openers: client,
                    orphaned_for_ms: words.maybe,
                    attributes: Some(words.about()),
                    first: sequence,
                    visible: number,
                    parent: words.maybe,
                }],
            }),
        ),
        (
            "packed",
            Reply::Packed {
                head: PackedHead {
                    flags: (fixed::LAST | fixed::SUMMED).into(),
                    checksum: client.into(),
                },
                bytes: &words.payload,
            },
        ),
        (
            "tallied",
            Reply::Tallied(TalliedBody {
                sequence,
                newer: number,
                groups: vec![
                    TalliedGroup {
                        schema: words.shorts[0],
                        values: vec![Some(words.text(0)), None],
                        objects: sequence,
                        bytes: Some(length),
                    },
                    TalliedGroup::default(),
                ],
                others: number,
                other_bytes: words.maybe,
            }),
        ),
        ("waiting", Reply::Waiting(words.waits())),
        ("explained", Reply::Explained(Box::new(words.explained()))),
        ("kept", Reply::Kept(Box::new(words.kept()))),
        ("board_page", Reply::BoardPage(BoardPageHead { bytes: length.into() })),
    ]
}
