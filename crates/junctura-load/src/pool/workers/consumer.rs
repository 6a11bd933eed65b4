//! A consumer of a load.

use std::time::Duration;

use hashbrown::HashSet;
use junctura::{Code, Follow, FollowOptions, Gap, Item, Object, Pool, Result, Version};
use serde_json::json;

use crate::history::{LoadHistory, digest};
use crate::messages::{OrderReader, Word, say, sleep};
use crate::pool::TouchMode;
use crate::pool::plan::WorkerPlan;
use crate::pool::report::WorkerFigures;
use crate::stamp::{self, PayloadStamp, now_ns};

const PROGRESS_EVERY_NS: u64 = 500_000_000;
/// With nothing new for this long, whatever is missing is lost.
const PATIENCE_NS: u64 = 10_000_000_000;

pub(crate) struct LoadConsumer<'a> {
    plan: &'a WorkerPlan,
    pool: &'a Pool,
    follow: Option<Follow>,
    history: LoadHistory,
    /// The pool is reached over a network.
    is_far: bool,
    selector: String,
    /// Per producer, the numbers of its objects so far.
    seen: Vec<SeenObjects>,
    /// Where processes are replaced: the versions received in this follow.
    came: HashSet<Version>,
    figures: WorkerFigures,
    is_grib: bool,
}

#[derive(Clone, Default)]
struct SeenObjects {
    count: u64,
    last: Option<u64>,
    /// For bundles, whose members are received in the order of their keys: the members of the newest one.
    members: HashSet<u64>,
}

impl SeenObjects {
    /// Records an object; returns false when it was received before, or was received too late.
    fn is_new(&mut self, number: u64, bundle: Option<u64>) -> bool {
        self.count += 1;
        // Numbers of one bundle are as good as the same.
        let place = number / bundle.unwrap_or(1);
        let is_late = self.last.is_some_and(|last| place < last);
        if self.last.replace(place) != Some(place) {
            self.members.clear();
        }
        !is_late && self.members.insert(number)
    }
}

impl<'a> LoadConsumer<'a> {
    pub(crate) fn new(plan: &'a WorkerPlan, pool: &'a Pool) -> Result<Self> {
        let group = plan.group_name();
        let history = LoadHistory::begin(plan.history.as_deref(), "consumer", &plan.name(), group.as_deref())?;
        let members: Vec<u32> = (0..plan.space.members)
            .filter(|&member| plan.share_of(member) == plan.share as usize)
            .collect();
        let numbers = members.iter().map(u32::to_string).collect::<Vec<_>>().join("/");
        let selector = if plan.sharers == 1 || group.is_some() {
            "class=od".to_owned()
        } else {
            format!("class=od,number={numbers}")
        };
        let window = if group.is_some() {
            plan.window
        } else {
            plan.window.max(64) * 2
        };
        let options = FollowOptions {
            window: Some(window),
            group: group.or_else(|| plan.own_group_name()).as_deref().map(Into::into),
            ..FollowOptions::default()
        };
        let follow = pool.follow_with(&selector, options)?;
        let seen = vec![SeenObjects::default(); plan.producers_in_all as usize];
        let mut consumer = Self {
            plan,
            pool,
            follow: None,
            history,
            is_far: !pool.route()?.starts_with("shm"),
            selector,
            seen,
            came: HashSet::new(),
            figures: WorkerFigures::default(),
            is_grib: plan.grib.is_some(),
        };
        consumer.note_beginning(&follow)?;
        consumer.follow = Some(follow);
        Ok(consumer)
    }

    fn note_beginning(&mut self, follow: &Follow) -> Result<()> {
        self.came.clear();
        let sequence = format!("{}.{}", self.pool.incarnation()?, follow.snapshot_sequence());
        let versions = if self.plan.group.is_some() { "all" } else { "newest" };
        self.history
            .note(|| json!({"op": "following", "wants": "all", "versions": versions, "seq": sequence, "cursor": null}))
    }

    /// Takes what is left: of the group, now that all others have left, or of what only this consumer is to get.
    fn close(&mut self) -> Result<()> {
        let join = self.plan.group_name();
        let selector = if join.is_some() { "" } else { &self.selector };
        let options = FollowOptions {
            until_live: true,
            join,
            ..FollowOptions::default()
        };
        let mut follow = self.pool.follow_with(selector, options)?;
        self.note_beginning(&follow)?;
        while let Some(item) = follow.next_item()? {
            match item {
                Item::Object(object) => self.take(object, now_ns(), false)?,
                Item::Live => self.history.note(|| json!({"op": "live"}))?,
                Item::Gap(gap) => self.note_gap(&gap)?,
            }
        }
        self.await_releases()
    }

    /// Waits until the server has taken note of all that was released, and knows that this client lives.
    fn await_releases(&self) -> Result<()> {
        self.pool.sync(None)
    }

    /// Receives until every offered object was received, or no more can be.
    pub(crate) fn run(&mut self, start_ns: u64, orders: &OrderReader) -> Result<WorkerFigures> {
        let measure_from = start_ns + self.plan.warmup_ns;
        let measure_to = measure_from + self.plan.duration_ns;
        let mut next_word = start_ns;
        let mut last_news = now_ns();
        let mut total = 0u64;
        let Some(mut follow) = self.follow.take() else {
            return Ok(WorkerFigures::default());
        };
        loop {
            match follow.next_within(Duration::from_millis(100)) {
                Ok(Some(Item::Object(object))) => {
                    let now = now_ns();
                    let is_measured = now >= measure_from && now < measure_to;
                    self.take(object, now, is_measured)?;
                    total += 1;
                    last_news = now;
                    if now >= next_word {
                        next_word = now + PROGRESS_EVERY_NS;
                        say(&Word::Progress { done: total })?;
                    }
                    if now < measure_to || !total.is_multiple_of(256) {
                        continue;
                    }
                }
                Ok(Some(Item::Live)) => {
                    self.history.note(|| json!({"op": "live"}))?;
                    continue;
                }
                Ok(Some(Item::Gap(gap))) => {
                    self.note_gap(&gap)?;
                    continue;
                }
                Ok(None) => break,
                Err(error) if error.code() == Code::Timeout => {}
                Err(error) => return Err(error),
            }
            let expected = orders.expected();
            if (self.plan.group.is_some() || self.plan.closes) && expected.is_some() {
                break;
            }
            let has_all = expected.as_ref().is_some_and(|counts| total >= counts.iter().sum());
            let gives_up = expected.is_some() && now_ns().saturating_sub(last_news) > PATIENCE_NS;
            if has_all || gives_up || orders.is_over() {
                break;
            }
        }
        let is_member = self.plan.group.is_some();
        // Objects that a query leaves unread when it stops stay for other consumers, and there are none: so they are
        // received before.
        if self.plan.closes && !is_member {
            self.close()?;
        }
        follow.stop()?;
        if self.plan.closes && is_member {
            self.close()?;
        } else if self.plan.own_group_name().is_some() {
            self.await_releases()?;
        }
        // Later than all records of killed consumers: the remaining objects were theirs.
        let t = now_ns();
        self.history.note(|| json!({"op": "end", "t": t, "through": null}))?;
        Ok(self.finish(orders))
    }

    fn take(&mut self, object: Object, now: u64, is_measured: bool) -> Result<()> {
        let payload = object.payload();
        let redelivered = object.redelivered();
        self.figures.redelivered += u64::from(redelivered);
        let stamp = PayloadStamp::read(payload);
        let is_right = match self.plan.mode {
            TouchMode::Metadata | TouchMode::Transfer => true,
            TouchMode::Touch => {
                std::hint::black_box(stamp::read_all(payload));
                true
            }
            TouchMode::Verify => self.is_grib || stamp.is_some_and(|stamp| stamp::is_filled(payload, stamp.number)),
        };
        match stamp {
            Some(stamp) if is_right => {
                if let Some(seen) = self.seen.get_mut(stamp.producer as usize) {
                    let in_order = seen.is_new(stamp.number, self.plan.bundle);
                    let is_new = if self.comes_in_order() {
                        in_order
                    } else {
                        self.came.insert(object.version()) || redelivered
                    };
                    self.figures.duplicates += u64::from(!is_new);
                }
                if is_measured {
                    self.figures.measured += 1;
                    self.figures.times.record(now.saturating_sub(stamp.offered_ns));
                }
            }
            _ => self.figures.damaged += 1,
        }
        if self.plan.work_ns == 0 && !self.history.is_kept() {
            return Ok(());
        }
        let may_be_lost = self.is_far && self.plan.group.is_some();
        if may_be_lost {
            // Unread objects belong to other consumers if the link was cut: a reply of the server, requested after the
            // object was received, shows that it was not cut before.
            self.await_releases()?;
        }
        let (id, version) = (object.key().to_owned(), object.version().to_string());
        let sum = digest(object.payload());
        self.history.note(
            || json!({"op": "got", "t": now, "id": id, "version": version, "sum": sum, "redelivered": redelivered}),
        )?;
        if self.plan.work_ns > 0 {
            sleep(Duration::from_nanos(self.plan.work_ns));
        }
        // Of no later moment is it known that it was still this member's.
        let at = if may_be_lost { now } else { now_ns() };
        self.history
            .note(|| json!({"op": "releasing", "t": at, "id": id, "version": version}))?;
        object.release()?;
        if self.is_far {
            // A release that has not arrived when the link ends does not count.
            self.await_releases()?;
        }
        self.history
            .note(|| json!({"op": "released", "id": id, "version": version}))
    }

    /// Whether each producer's objects are received in offer order: not by members of a group, which share them, and
    /// not where a follow begins with existing objects in the order of keys.
    fn comes_in_order(&self) -> bool {
        self.plan.group.is_none() && !self.plan.closes
    }

    fn note_gap(&mut self, gap: &Gap) -> Result<()> {
        self.figures.gaps += gap.items.len() as u64;
        self.history.note(|| {
            let items: Vec<_> = gap
                .items
                .iter()
                .map(|item| json!([item.object.key(), item.version.to_string()]))
                .collect();
            json!({"op": "gap", "items": items, "reason": gap.reason})
        })
    }

    fn finish(&mut self, orders: &OrderReader) -> WorkerFigures {
        let mut figures = std::mem::take(&mut self.figures);
        figures.done = self.seen.iter().map(|seen| seen.count).collect();
        if let Some(expected) = orders.expected().filter(|_| self.comes_in_order()) {
            figures.lost = expected
                .iter()
                .zip(&figures.done)
                .map(|(all, got)| all.saturating_sub(*got))
                .sum();
        }
        figures
    }
}
