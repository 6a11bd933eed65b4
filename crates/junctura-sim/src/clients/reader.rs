//! The guarantees for readers, seen from their side: every object once, in order, none missing.
//!
//! A [`Chain`] is a follow, and the follows that continued from its cursors after its client was lost. A [`Wish`] is a
//! requirement. Both record what arrived, and at the end of a run [`Chain::check`] and [`Wish::check`] compare that with
//! all offers ever made. They do not know the server's state or the timing of its messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use junctura_model::version::{Cursor, Phase};

use crate::INCARNATION;
use crate::clients::replies::Delivered;
use crate::clients::requests::Resume;
use crate::model::{Fate, Model};
use crate::run::universe::{Order, Query, Universe};

type Checked = Result<(), String>;

/// One follow between its call and its end.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The client.
    pub client: u32,
    /// The follow's number.
    pub request: u64,
    /// Up to this number it is first phase, above it is live.
    pub since: Option<u64>,
    /// The newest number when the server began to answer: if it is to end when it has caught up, it has had everything up to
    /// this one then.
    answered_at: u64,
    live: bool,
    newest: u64,
    last: Option<(usize, Option<i64>)>,
    given: BTreeSet<u64>,
}

/// See the module's page.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is another property of a follow")]
pub struct Chain {
    /// Its selector.
    pub query: Query,
    /// The order of its first phase.
    pub order: Order,
    /// It skipped the first phase.
    pub only_new: bool,
    /// Its follow ends when it has caught up.
    pub until_live: bool,
    /// It receives through a requirement: the place of its wish.
    pub wish: Option<usize>,
    /// It receives through a requirement with a name, which may be owed again what another reader had.
    pub named: bool,
    /// It receives a share of a group.
    pub shared: bool,
    /// The current follow.
    pub session: Option<Session>,
    /// The cursor from which it can continue.
    pub cursor: Option<Resume>,
    /// Nothing can continue from it.
    pub over: bool,
    /// The newest number when it first began, and what was visible then.
    pub began: Option<(u64, BTreeSet<u64>)>,
    /// Objects that a resumed reader need not get.
    pub excused: BTreeSet<u64>,
    got: BTreeSet<u64>,
    gaps: BTreeSet<u64>,
    /// Its history, for the judge.
    pub rows: String,
    /// At the end of the run it had been given everything up to this number.
    pub through: Option<u64>,
}

impl Chain {
    /// A follow that is about to be asked for.
    #[must_use]
    pub fn new(query: Query, order: Order, only_new: bool, until_live: bool, wish: Option<usize>) -> Self {
        Self {
            query,
            order,
            only_new,
            until_live,
            wish,
            named: false,
            shared: false,
            session: None,
            cursor: None,
            over: false,
            began: None,
            excused: BTreeSet::new(),
            got: BTreeSet::new(),
            gaps: BTreeSet::new(),
            rows: String::new(),
            through: None,
        }
    }

    /// Its follow is over; another may continue from the cursor.
    pub fn interrupt(&mut self) {
        self.session = None;
        self.over |= self.cursor.is_none() || self.wish.is_some() || self.named;
    }

    /// Its follow has ended in good order.
    ///
    /// # Errors
    /// It was to end when it has caught up, and something is missing that was there when it began.
    pub fn ends(&mut self, model: &Model) -> Checked {
        let is_bounded = self.until_live && !self.is_through_something();
        let checked = match &self.session {
            Some(session) if is_bounded && session.live => self.has_all(model, session.answered_at),
            _ => Ok(()),
        };
        self.interrupt();
        checked
    }

    /// It receives what a requirement is owed.
    fn is_through_something(&self) -> bool {
        self.wish.is_some() || self.named
    }

    /// The server begins to answer; this is the newest number then.
    pub fn is_answered(&mut self, newest: u64) {
        if let Some(session) = &mut self.session {
            session.answered_at = newest;
        }
    }

    /// The follow began.
    pub fn begins(&mut self, sequence: u64, universe: &Universe) {
        if let Some(session) = &mut self.session {
            session.since = Some(sequence);
        }
        let wants = universe
            .keys
            .iter()
            .filter(|key| self.query.matches(key, None))
            .map(|key| format!("{:?}", key.text));
        let wants = wants.collect::<Vec<_>>().join(",");
        let _ = writeln!(
            self.rows,
            r#"{{"op":"following","wants":[{wants}],"versions":"newest","seq":"{INCARNATION}.{sequence}","cursor":null}}"#
        );
    }

    /// A client is about to ask for it.
    pub fn asked_by(&mut self, client: u32, request: u64) {
        self.session = Some(Session {
            client,
            request,
            ..Session::default()
        });
    }

    /// An object arrived.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn receives(&mut self, delivered: &Delivered, model: &Model, universe: &Universe, now: u64) -> Checked {
        let Some(session) = &mut self.session else {
            return Err("nobody follows".to_owned());
        };
        let sequence = delivered.sequence();
        let Some(since) = session.since else {
            return Err("before the follow began".to_owned());
        };
        if !session.given.insert(sequence) {
            return Err("twice in one session".to_owned());
        }
        let object = &model.objects[sequence as usize - 1];
        let (key, size) = (object.offer.key, object.offer.size);
        if !self.query.matches(&universe.keys[key], size) {
            return Err("it was not asked for".to_owned());
        }
        let value = self.order.value(&universe.keys[key], size);
        if delivered.is_first_phase() {
            if session.live || sequence > since {
                return Err("in the wrong phase".to_owned());
            }
            let is_sorted = match session.last {
                Some(_) if self.shared => true,
                Some(_) if self.wish.is_some() || self.named => sequence > session.newest,
                Some((last, last_value)) => self
                    .order
                    .compare((&universe.keys[last], last_value), (&universe.keys[key], value))
                    .is_lt(),
                None => true,
            };
            if !is_sorted {
                return Err("out of order".to_owned());
            }
            session.last = Some((key, value));
        } else if self.named {
            if !session.live {
                return Err("in the wrong phase".to_owned());
            }
        } else if !session.live || sequence <= since || session.newest >= sequence && session.newest > since {
            return Err("out of order, or in the wrong phase".to_owned());
        }
        session.newest = sequence;
        self.got.insert(sequence);
        self.cursor = Some(resume(delivered, since, key, value, &universe.keys[key].text));
        let (id, payload) = (&universe.keys[key].text, object.offer.payload);
        let _ = writeln!(
            self.rows,
            r#"{{"op":"got","t":{now},"id":{id:?},"version":"{INCARNATION}.{sequence}","sum":"{payload}","redelivered":false}}"#
        );
        Ok(())
    }

    /// The reader gives a version back, and may be given it again.
    pub fn gives_back(&mut self, sequence: u64) {
        if let Some(session) = &mut self.session {
            session.given.remove(&sequence);
        }
    }

    /// The first phase is over.
    ///
    /// # Errors
    /// An existing object has not arrived.
    pub fn goes_live(&mut self, model: &Model) -> Checked {
        let Some(session) = &mut self.session else {
            return Err("nobody follows".to_owned());
        };
        session.live = true;
        self.rows.push_str("{\"op\":\"live\"}\n");
        if self.until_live
            && !self.only_new
            && !self.named
            && let Some((_, there)) = &self.began
            && let Some(lost) = there
                .iter()
                .find(|&&one| !self.has_come(one) && model.fate(one) != Fate::Superseded)
        {
            return Err(format!("{lost} was visible and is not delivered"));
        }
        Ok(())
    }

    /// Some will not arrive.
    pub fn misses(&mut self, sequences: &[u64], reason: &str, model: &Model) {
        self.gaps.extend(sequences);
        let items = sequences
            .iter()
            .map(|&one| format!(r#"[{:?},"{INCARNATION}.{one}"]"#, model.key_of(one).text));
        let items = items.collect::<Vec<_>>().join(",");
        let _ = writeln!(self.rows, r#"{{"op":"gap","items":[{items}],"reason":"{reason}"}}"#);
    }

    /// At the end of a run, when everything was read: nothing that was promised is missing.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&mut self, model: &Model) -> Checked {
        let is_live = self.session.as_ref().is_some_and(|session| session.live);
        if self.began.is_none() || self.is_through_something() || self.over || !is_live {
            return Ok(());
        }
        self.has_all(model, model.sequence)?;
        self.through = self.excused.is_empty().then_some(model.sequence);
        Ok(())
    }

    fn has_come(&self, sequence: u64) -> bool {
        [&self.got, &self.gaps, &self.excused]
            .iter()
            .any(|some| some.contains(&sequence))
    }

    /// Nothing up to this number is missing that was promised.
    fn has_all(&self, model: &Model, until: u64) -> Checked {
        let Some((first, there)) = &self.began else {
            return Ok(());
        };
        let mut came: BTreeMap<usize, u64> = BTreeMap::new();
        for &sequence in self.got.iter().chain(&self.gaps).chain(&self.excused) {
            let newest = came.entry(model.objects[sequence as usize - 1].offer.key).or_default();
            *newest = sequence.max(*newest);
        }
        for object in model.objects.iter().take(until as usize) {
            let sequence = object.sequence;
            let is_owed = sequence > *first || !self.only_new && there.contains(&sequence);
            let came_newer = came.get(&object.offer.key).is_some_and(|&newest| newest > sequence);
            if is_owed
                && !self.has_come(sequence)
                && model.matches(&self.query, sequence)
                && !(object.fate == Fate::Superseded && came_newer)
            {
                return Err(format!(
                    "{} was promised version {sequence} ({:?}) and never got it: it got {:?}, gaps {:?}",
                    self.query.text(),
                    object.fate,
                    self.got,
                    self.gaps
                ));
            }
        }
        Ok(())
    }
}

fn resume(delivered: &Delivered, since: u64, key: usize, value: Option<i64>, text: &str) -> Resume {
    let (phase, since, first) = if delivered.is_first_phase() {
        let last_sort_value = value.map(|value| value.to_string());
        (
            Phase::First {
                snapshot: since,
                last_sort_value,
                last_key: text.to_owned(),
            },
            since,
            Some((key, value)),
        )
    } else {
        let last = delivered.sequence();
        (Phase::Live { last }, last, None)
    };
    Resume {
        text: Cursor {
            incarnation: INCARNATION,
            phase,
        }
        .to_string(),
        foreign: false,
        since,
        first,
    }
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The required objects.
    pub query: Query,
    /// Only the newest version of each key.
    pub newest_only: bool,
    /// Its client.
    pub client: u32,
    /// Its number.
    pub request: u64,
    /// It was retracted, or its client is lost.
    pub over: bool,
    /// A follow has received, or receives, through it.
    pub read: bool,
    /// The newest number when it was made, and what was visible then.
    pub began: Option<(u64, BTreeSet<u64>)>,
    /// Objects received through it, and objects reported in gaps.
    pub came: BTreeSet<u64>,
    /// The event in which it was made.
    pub made: u64,
}

impl Wish {
    /// At the end of a run, when everything was read through it: nothing that it was owed is missing.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self, model: &Model) -> Checked {
        let Some((first, there)) = &self.began else {
            return Ok(());
        };
        if self.over || !self.read {
            return Ok(());
        }
        let lost = model.objects.iter().find(|object| {
            let sequence = object.sequence;
            (sequence > *first || there.contains(&sequence))
                && model.matches(&self.query, sequence)
                && !self.came.contains(&sequence)
                && !model.was_passed_over(self.made, sequence)
                && !(self.newest_only && object.fate == Fate::Superseded)
        });
        match lost {
            Some(lost) => Err(format!(
                "requirement {} of client {} ({}) was owed version {} ({:?}) and never got it",
                self.request,
                self.client,
                self.query.text(),
                lost.sequence,
                lost.fate
            )),
            None => Ok(()),
        }
    }
}
