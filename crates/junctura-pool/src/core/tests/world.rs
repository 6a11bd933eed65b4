//! A pool without sockets: requests are passed to it directly, replies are kept as lines of text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use junctura_model::{Error, Given, Result, Schema};
use junctura_wire::body::{
    BundleRequest, BundleStatus, DemandRequest, FollowRequest, Hello, LeaseRequest, ListRequest, RequireRequest,
    RetractRequest, SubscribeRequest, TargetBody, WithdrawRequest,
};
use junctura_wire::fixed::{self, OfferHead, ReleasedHolding, SegmentHead};
use junctura_wire::look::TalliedBody;
use junctura_wire::rights::AccessRights;
use junctura_wire::{Reply, Request, VERSION};

use crate::core::{Core, Nanoseconds};
use crate::{Effects, PoolConfig, SpillJob};

const SCHEMA: &str = "
name: letters
same_key: supersede
key:
  dataset: [set]
  collocation: []
  element: [name]
attributes:
  set:  {type: string, default: all}
  name: {type: string}
  size: {type: integer}
";

/// An entry of a list, with the place of its payload if that is not memory.
fn listed(name: impl Fn(&[u8]) -> String, (head, record): (fixed::ListedHead, &[u8])) -> String {
    let is_in_file = head.flags.get() & fixed::SPILLED != 0;
    name(record) + if is_in_file { " (in the file)" } else { "" }
}

/// A tally as text: `to v7 newer 0 others 0 | a/1=2` for two objects with the values `a` and `1`; bytes follow a colon.
fn tallied_text(tallied: &TalliedBody<'_>) -> String {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| format!(":{bytes}")).unwrap_or_default();
    let mut text = format!(
        "to v{} newer {} others {}{} |",
        tallied.sequence,
        tallied.newer,
        tallied.others,
        bytes(tallied.other_bytes)
    );
    for group in &tallied.groups {
        let values: Vec<&str> = group
            .values
            .iter()
            .map(|value| value.as_deref().unwrap_or("-"))
            .collect();
        let _ = write!(text, " {}={}{}", values.join("/"), group.objects, bytes(group.bytes));
    }
    text
}

/// The recorded effects of the core.
#[derive(Default)]
pub(super) struct Effected {
    lines: BTreeMap<u32, Vec<String>>,
    /// The deliveries of each client: holding and sequence number by name.
    pub(super) holdings: BTreeMap<(u32, u64), u32>,
    pub(super) segments: BTreeMap<u32, u64>,
    /// Payloads that are being written to the file tier: offset and length.
    pub(super) jobs: BTreeMap<u32, (u64, u64)>,
    pub(super) backlog_bytes: usize,
    pub(super) backlog_bytes_of_all: usize,
}

impl Effects for Effected {
    fn reply(&mut self, client: u32, request: u64, reply: &Reply<'_>) {
        let name = |record: &[u8]| {
            let schema = Schema::parse_yaml(SCHEMA).unwrap();
            let attributes = schema.check(record).unwrap();
            attributes.get(schema.find("name").unwrap()).unwrap().to_owned()
        };
        let text = match reply {
            Reply::Delivered { head, record, inline } => {
                self.holdings.insert((client, head.sequence.get()), head.holding.get());
                let flag = |flag, text| if head.flags.get() & flag == 0 { "" } else { text };
                let phase = flag(fixed::FIRST_PHASE, " first");
                let again = flag(fixed::REDELIVERED, " again");
                let spilled = flag(fixed::SPILLED, " spilled");
                assert_eq!(spilled.is_empty(), head.flags.get() & fixed::CHECKSUM == 0);
                format!(
                    "got {} v{} {}{phase}{again}{spilled}",
                    name(record),
                    head.sequence,
                    String::from_utf8_lossy(inline)
                )
            }
            Reply::Gap(gap) => {
                let items: Vec<_> = gap
                    .items
                    .iter()
                    .map(|item| format!("{} v{}", name(&item.record), item.sequence))
                    .collect();
                let unnamed = gap.unnamed.map(|more| format!("and {more} more")).unwrap_or_default();
                format!("gap {} {}{unnamed}", gap.reason, items.join(" "))
            }
            Reply::Listed(page) => {
                let names: Vec<_> = page.iter().map(|entry| listed(name, entry.unwrap())).collect();
                format!("listed {}{}", names.join(" "), if page.last { "." } else { "…" })
            }
            Reply::Event(event) => {
                let kind = junctura_wire::body::events::NAMES[event.event.trailing_zeros() as usize];
                let object = event
                    .object
                    .as_ref()
                    .map(|object| format!(" {} v{}", name(&object.record), object.sequence));
                let who = event
                    .client
                    .as_ref()
                    .map(|peer| format!(" by {}", peer.name))
                    .unwrap_or_default();
                let requirement = event
                    .requirement
                    .as_ref()
                    .map(|it| format!(" {} {:?}", it.name, it.selector));
                let bundle = event.bundle.as_ref().map(|it| {
                    let declared = it.declared.map(|count| format!(" of {count}")).unwrap_or_default();
                    format!(" {} {}{declared}", it.path.as_deref().unwrap_or("-"), it.members)
                });
                format!(
                    "{kind}{}{who}{}",
                    object.or(requirement).or(bundle).unwrap_or_default(),
                    if event.reason.is_empty() { "" } else { " why" }
                )
            }
            Reply::Failed(failure) | Reply::Ended(failure) => {
                let error = Error::from(failure.clone());
                format!("{} {}", error.code().name(), error.cause())
            }
            Reply::Offered(0) => "staged".to_owned(),
            Reply::Offered(sequence) => format!("offered v{sequence}"),
            Reply::Completed { head, members } => {
                let members: Vec<_> = members
                    .iter()
                    .map(|member| format!(" {}=v{}", member.request, member.sequence))
                    .collect();
                format!("completed {} from v{}{}", head.objects, head.first, members.concat())
            }
            Reply::Bundled(page) => {
                let line = |bundle: &BundleStatus<'_>| {
                    let path = bundle.path.as_deref().unwrap_or("-");
                    let declared = bundle.declared.map(|count| format!("/{count}")).unwrap_or_default();
                    let state = ["open", "complete", "visible"][usize::from(bundle.state)];
                    format!(" {path}:{state}:{}{declared}", bundle.members)
                };
                format!("bundles{}", page.items.iter().map(line).collect::<String>())
            }
            Reply::Tallied(tallied) => tallied_text(tallied),
            Reply::Waiting(page) => format!("{} wait", page.requests.len()),
            Reply::Explained(object) => object.state.clone(),
            Reply::Kept(_) => "kept".to_owned(),
            Reply::Packed { bytes, .. } => format!("packed {}", bytes.len()),
            Reply::Freed(slots) => format!("freed {}", slots.len()),
            Reply::Welcome(_) => "welcome".to_owned(),
            Reply::Live => "live".to_owned(),
            Reply::Done(count) => format!("done {count}"),
            Reply::Began(sequence) => format!("began v{sequence}"),
            Reply::Recall(segment) => format!("recall {segment}"),
            Reply::Dropped(segment) => format!("dropped {segment}"),
            Reply::Stats(_) => "stats".to_owned(),
            Reply::Segment(_) => "segment".to_owned(),
            Reply::Rings(_) | Reply::BoardPage(_) => unreachable!("the core knows nothing of rings and boards"),
        };
        self.lines.entry(client).or_default().push(format!("{request}: {text}"));
    }

    fn reply_segment(&mut self, client: u32, request: u64, head: SegmentHead) {
        if head.segment.get() == fixed::FILE_TIER {
            let text = format!("{request}: file");
            return self.lines.entry(client).or_default().push(text);
        }
        let kind = if head.writable.get() == 1 { "leased" } else { "mapped" };
        self.lines
            .entry(client)
            .or_default()
            .push(format!("{request}: {kind} {}", head.segment));
    }

    fn backlog_bytes(&self, _: u32) -> usize {
        self.backlog_bytes
    }

    fn backlog_bytes_of_all(&self) -> usize {
        self.backlog_bytes_of_all
    }

    fn create_segment(&mut self, segment: u32, bytes: u64) -> Result<()> {
        self.segments.insert(segment, bytes);
        Ok(())
    }

    fn spill(&mut self, job: SpillJob<'_>) {
        let apart = |&(at, length): &(u64, u64)| at + length <= job.at || job.at + job.length <= at;
        assert!(self.jobs.values().all(apart), "two are written to one place");
        self.jobs.insert(job.job, (job.at, job.length));
    }

    fn unspill(&mut self, _: u64, _: u64) {}

    fn drop_segment(&mut self, segment: u32) {
        assert!(
            self.segments.remove(&segment).is_some(),
            "segment {segment} is not there"
        );
    }

    fn disconnect(&mut self, client: u32, _: &Error) {
        self.lines.entry(client).or_default().push("disconnected".to_owned());
    }
}

/// A pool and its clients.
pub(super) struct World {
    pub(super) core: Core,
    pub(super) fx: Effected,
    pub(super) now: Nanoseconds,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut PoolConfig)) -> Self {
        let mut config = PoolConfig {
            schemas: vec![Arc::new(Schema::parse_yaml(SCHEMA).unwrap())],
            ..PoolConfig::default()
        };
        change(&mut config);
        Self {
            core: Core::new(config).unwrap(),
            fx: Effected::default(),
            now: 0,
        }
    }

    pub(super) fn rejecting() -> Self {
        let yaml = SCHEMA.replace("supersede", "reject");
        Self::with(|config| config.schemas = vec![Arc::new(Schema::parse_yaml(&yaml).unwrap())])
    }

    /// A new client that has sent hello.
    pub(super) fn join(&mut self, name: &str) -> u32 {
        self.join_as(name, None)
    }

    /// The same; its offers wait so many milliseconds for memory.
    pub(super) fn join_with_offer_timeout(&mut self, name: &str, milliseconds: u64) -> u32 {
        self.join_as(name, Some(milliseconds))
    }

    /// A new client whose gate states these rights of its token.
    pub(super) fn join_with_token(&mut self, name: &str, rights: AccessRights, token: u32) -> u32 {
        self.greet(Hello {
            name: name.to_owned().into(),
            rights: Some(rights.bits()),
            token: Some(token),
            ..Hello::default()
        })
    }

    fn join_as(&mut self, name: &str, offer_timeout_ms: Option<u64>) -> u32 {
        self.greet(Hello {
            name: name.to_owned().into(),
            offer_timeout_ms,
            ..Hello::default()
        })
    }

    fn greet(&mut self, hello: Hello<'_>) -> u32 {
        let client = self.core.join().unwrap();
        let hello = Hello {
            version: VERSION,
            host: "h".into(),
            pid: 1,
            ..hello
        };
        self.ask(client, 0, Request::Hello(hello));
        assert_eq!(self.heard(client), ["0: welcome"]);
        client
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write the request where they ask")]
    pub(super) fn ask(&mut self, client: u32, number: u64, request: Request<'_>) {
        self.core.request(self.now, client, number, &request, &mut self.fx);
    }

    /// Returns a client's replies since the last call.
    pub(super) fn heard(&mut self, client: u32) -> Vec<String> {
        self.fx.lines.remove(&client).unwrap_or_default()
    }

    pub(super) fn record(&self, name: &str, size: i64) -> Vec<u8> {
        let mut record = Vec::new();
        let given = [("name", Given::Text(name)), ("size", Given::Integer(size))];
        self.core.config.schemas[0].record(given, &mut record).unwrap();
        record
    }

    pub(super) fn key(&self, name: &str) -> Vec<u8> {
        let mut record = Vec::new();
        self.core.config.schemas[0]
            .record([("name", Given::Text(name))], &mut record)
            .unwrap();
        record
    }

    /// Offers `payload` inside the message; `releases` 0: until withdrawn.
    pub(super) fn offer(&mut self, client: u32, number: u64, name: &str, payload: &str, releases: u32) {
        let record = self.record(name, payload.len() as i64);
        let head = OfferHead {
            flags: fixed::INLINE.into(),
            releases: releases.into(),
            record_length: (record.len() as u32).into(),
            length: (payload.len() as u64).into(),
            ..OfferHead::default()
        };
        self.ask(
            client,
            number,
            Request::Offer {
                head,
                record: &record,
                inline: payload.as_bytes(),
            },
        );
    }

    /// Opens a bundle; `members` 0: it is to be sealed.
    pub(super) fn open(&mut self, client: u32, number: u64, path: &str, members: u64) {
        self.open_with(client, number, |bundle| {
            bundle.path = Some(path.to_owned().into()).filter(|_| !path.is_empty());
            bundle.members = Some(members).filter(|&members| members > 0);
        });
    }

    pub(super) fn open_with(&mut self, client: u32, number: u64, change: impl FnOnce(&mut BundleRequest<'_>)) {
        let mut bundle = BundleRequest::default();
        change(&mut bundle);
        self.ask(client, number, Request::Bundle(bundle));
    }

    /// Offers `payload` into the bundle that the client's request `bundle` has open.
    pub(super) fn stage(&mut self, client: u32, number: u64, bundle: u64, name: &str, payload: &str) {
        self.stage_for(client, number, bundle, name, payload, (0, 0));
    }

    /// The same with flags, and releases or milliseconds.
    pub(super) fn stage_for(
        &mut self,
        client: u32,
        number: u64,
        bundle: u64,
        name: &str,
        payload: &str,
        retention: (u16, u32),
    ) {
        self.stage_or_offer(client, number, Some(bundle), name, payload, retention);
    }

    /// Offers something, into a bundle or not, with flags about its retention.
    pub(super) fn stage_or_offer(
        &mut self,
        client: u32,
        number: u64,
        bundle: Option<u64>,
        name: &str,
        payload: &str,
        (flags, releases): (u16, u32),
    ) {
        let record = self.record(name, payload.len() as i64);
        let head = OfferHead {
            flags: (fixed::INLINE | flags).into(),
            releases: releases.into(),
            record_length: (record.len() as u32).into(),
            length: (payload.len() as u64).into(),
            ..OfferHead::default()
        };
        let (record, inline) = (record.as_slice(), payload.as_bytes());
        let request = match bundle {
            None => Request::Offer { head, record, inline },
            Some(bundle) => Request::Stage {
                bundle,
                head,
                record,
                inline,
            },
        };
        self.ask(client, number, request);
    }

    /// Offers an empty payload that stays for a time.
    pub(super) fn offer_for(&mut self, client: u32, number: u64, name: &str, milliseconds: u32) {
        self.offer_with(client, number, name, fixed::FOR_A_TIME, milliseconds);
    }

    /// Offers an empty payload with flags about its retention.
    pub(super) fn offer_with(&mut self, client: u32, number: u64, name: &str, flags: u16, releases: u32) {
        let record = self.record(name, 0);
        let head = OfferHead {
            flags: (fixed::INLINE | flags).into(),
            releases: releases.into(),
            record_length: (record.len() as u32).into(),
            ..OfferHead::default()
        };
        let request = Request::Offer {
            head,
            record: &record,
            inline: &[],
        };
        self.ask(client, number, request);
    }

    /// A world whose schema has a default retention.
    pub(super) fn retaining(retention: &str) -> Self {
        let yaml = format!("{SCHEMA}retention: {retention}\n");
        Self::with(|config| config.schemas = vec![Arc::new(Schema::parse_yaml(&yaml).unwrap())])
    }

    pub(super) fn offer_slot(&mut self, client: u32, number: u64, name: &str, segment: u32, slot: u32, length: u64) {
        let record = self.record(name, 0);
        let head = OfferHead {
            segment: segment.into(),
            slot: slot.into(),
            record_length: (record.len() as u32).into(),
            length: length.into(),
            ..OfferHead::default()
        };
        self.ask(
            client,
            number,
            Request::Offer {
                head,
                record: &record,
                inline: &[],
            },
        );
    }

    pub(super) fn demand(&mut self, client: u32, number: u64, selector: &str, timeout_ms: Option<u64>) {
        let demand = DemandRequest {
            target: TargetBody::selector(selector),
            timeout_ms,
            requirement: None,
            requirement_name: None,
            incomplete: false,
        };
        self.ask(client, number, Request::Demand(demand));
    }

    pub(super) fn demand_key(&mut self, client: u32, number: u64, name: &str, timeout_ms: Option<u64>) {
        let key = self.key(name);
        let demand = DemandRequest {
            target: TargetBody::key(0, &key),
            timeout_ms,
            requirement: None,
            requirement_name: None,
            incomplete: false,
        };
        self.ask(client, number, Request::Demand(demand));
    }

    pub(super) fn lease(&mut self, client: u32, number: u64, payload_bytes: u64, timeout_ms: Option<u64>) {
        self.ask(
            client,
            number,
            Request::Lease(LeaseRequest {
                payload_bytes,
                timeout_ms,
                staged: false,
            }),
        );
    }

    pub(super) fn follow(&mut self, client: u32, number: u64, change: impl FnOnce(&mut FollowRequest<'_>)) {
        let mut follow = FollowRequest {
            selector: "".into(),
            order: junctura_wire::body::ListOrder::Key,
            window: 100,
            cursor: None,
            only_new: false,
            requirement: None,
            until_live: false,
            requirement_name: None,
            ..FollowRequest::default()
        };
        change(&mut follow);
        self.ask(client, number, Request::Follow(follow));
    }

    pub(super) fn list(&mut self, client: u32, number: u64, selector: &str, order: &str) {
        let order = if order.is_empty() {
            junctura_wire::body::ListOrder::Key
        } else {
            junctura_wire::body::ListOrder::Attribute(order.into())
        };
        self.ask(
            client,
            number,
            Request::List(ListRequest {
                selector: selector.into(),
                order,
                ..ListRequest::default()
            }),
        );
    }

    pub(super) fn require(&mut self, client: u32, number: u64, selector: &str, newest_only: bool) {
        self.require_with(client, number, selector, |require| require.newest_only = newest_only);
    }

    /// Requires by name; `time_to_live_ms` 0: until it is retracted.
    pub(super) fn require_named(&mut self, client: u32, number: u64, name: &str, selector: &str, time_to_live_ms: u64) {
        self.require_with(client, number, selector, |require| {
            require.name = Some(name.to_owned().into());
            require.time_to_live_ms = Some(time_to_live_ms).filter(|&time| time > 0);
        });
    }

    pub(super) fn require_with(
        &mut self,
        client: u32,
        number: u64,
        selector: &str,
        change: impl FnOnce(&mut RequireRequest<'_>),
    ) {
        let mut require = RequireRequest {
            selector: selector.into(),
            ..RequireRequest::default()
        };
        change(&mut require);
        self.ask(client, number, Request::Require(require));
    }

    pub(super) fn retract(&mut self, client: u32, number: u64, name: &str) {
        self.ask(client, number, Request::Retract(RetractRequest { name: name.into() }));
    }

    pub(super) fn withdraw(&mut self, client: u32, number: u64, name: &str, timeout_ms: Option<u64>, force: bool) {
        let key = self.key(name);
        self.ask(
            client,
            number,
            Request::Withdraw(WithdrawRequest {
                target: TargetBody::key(0, &key),
                timeout_ms,
                force,
            }),
        );
    }

    pub(super) fn subscribe(&mut self, client: u32, number: u64, selector: &str, events: u32) {
        self.ask(
            client,
            number,
            Request::Subscribe(SubscribeRequest {
                selector: selector.into(),
                events,
            }),
        );
    }

    /// Releases what the client got under this sequence number.
    pub(super) fn release(&mut self, client: u32, sequence: u64) {
        self.release_with(client, sequence, 0);
    }

    /// Returns an object unread.
    pub(super) fn give_back_unread(&mut self, client: u32, sequence: u64) {
        self.release_with(client, sequence, fixed::UNREAD);
    }

    /// Returns an object for redelivery.
    pub(super) fn give_back_undone(&mut self, client: u32, sequence: u64) {
        self.release_with(client, sequence, fixed::UNDONE);
    }

    /// Releases it, and continues to read its payload.
    pub(super) fn release_mapped(&mut self, client: u32, sequence: u64, flags: u32) {
        let holding = self.fx.holdings.get(&(client, sequence)).copied();
        self.release_with(client, sequence, flags | fixed::MAPPED);
        self.fx
            .holdings
            .extend(holding.map(|holding| ((client, sequence), holding)));
    }

    fn release_with(&mut self, client: u32, sequence: u64, flags: u32) {
        let holding = self.fx.holdings.remove(&(client, sequence)).unwrap_or(u32::MAX);
        let holding = [ReleasedHolding {
            holding: holding.into(),
            flags: flags.into(),
            sequence: sequence.into(),
        }];
        self.ask(client, 0, Request::Release(&holding));
    }

    pub(super) fn leave(&mut self, client: u32) {
        self.core.leave(self.now, client, "its connection ended", &mut self.fx);
    }

    /// The file tier has written whatever it was to write, or could not.
    pub(super) fn written(&mut self, outcome: Result<u32>) {
        let (job, _) = self.fx.jobs.pop_first().expect("something is being written");
        self.core.spilled(self.now, job, outcome, &mut self.fx);
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += milliseconds * 1_000_000;
        self.core.tick(self.now, &mut self.fx);
    }

    /// Nothing is kept: only tombstones are left.
    pub(super) fn assert_empty(&self) {
        let stat = self.core.stat();
        assert_eq!(stat.objects.visible, 0);
        assert_eq!(stat.objects.kept, 0);
        assert_eq!(stat.memory.used_bytes, 0, "{stat:?}");
        assert_eq!(stat.interests.standing, 0);
        assert_eq!(self.fx.segments.len(), 0);
        assert!(self.core.is_deserted());
    }
}
