//! Groups, seen from outside: deliveries to members, and completions.
//!
//! It knows only the messages: deliveries to members, releases, and clients that were lost. From these alone it judges, for
//! each life of a group, that
//! - no two living clients have the same version;
//! - each version is completed once, by the release of its holder, and is not delivered after that;
//! - a delivery is marked as redelivered exactly when an earlier holder was lost with it, or gave it back undone;
//! - at the end, each version that became visible in its time was completed, was reported in a gap, or is still owed.

use std::collections::{BTreeMap, BTreeSet};

use crate::clients::replies::Said;
use crate::clients::requests::{Ask, Back, Terms};
use crate::model::{Cause, Fate, Model};
use crate::run::universe::Order;
use crate::world::recorder::Recorder;

type Checked = Result<(), String>;

/// One life of one group.
#[derive(Clone, Debug, Default)]
struct Share {
    /// The event in which it was made.
    made: u64,
    /// The objects visible then, and the newest number.
    there: BTreeSet<u64>,
    since: u64,
    /// The holders: client and holding.
    with: BTreeMap<u64, (u32, u32)>,
    done: BTreeSet<u64>,
    /// Returned by a client that may have seen it.
    was_out: BTreeSet<u64>,
    told: BTreeSet<u64>,
}

/// All groups of a run, by the places of their names.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    lives: BTreeMap<usize, Share>,
    /// Follows of members: their groups, and the lives of these.
    members: BTreeMap<(u32, u64), (usize, u64)>,
    /// Follows that are to become members of these groups.
    asked: BTreeMap<(u32, u64), usize>,
    /// Requests by which clients keep the `require` of named requirements open.
    uses: BTreeMap<(u32, u64), usize>,
}

impl Shares {
    /// An event is over, and the model has judged it.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn see(&mut self, cause: &Cause<'_>, recorder: &Recorder, model: &Model, terms: &[Terms]) -> Checked {
        self.note_lives(model, terms);
        if let Cause::Request(client, number, ask) = cause {
            match ask {
                Ask::Require { name: Some(name), .. } => _ = self.uses.insert((*client, *number), *name),
                Ask::Follow { group, .. } => {
                    if let Some(share) = group {
                        self.asked.insert((*client, *number), share.name);
                    }
                    let name = model.group_of(*client, *number);
                    if let Some(name) = name.or_else(|| self.ended_at_once(*client, ask, recorder)) {
                        let life = self.lives.get(&name).map_or(0, |share| share.made);
                        self.members.insert((*client, *number), (name, life));
                    }
                }
                Ask::Release(holdings) | Ask::ReleaseMapped(holdings) => self.come_back(*client, holdings, None)?,
                Ask::GiveBack(holdings, back) => self.come_back(*client, holdings, Some(*back))?,
                _ => {}
            }
        }
        let lost: BTreeSet<u32> = match cause {
            Cause::Left(client) | Cause::Request(client, _, Ask::Goodbye) => [*client].into(),
            _ => recorder.ended.clone(),
        };
        if let Cause::Left(client) = cause {
            self.lose(*client);
        }
        for (client, request, said) in &recorder.said {
            match &**said {
                // One that makes a group of very much joins it later.
                Said::Began(_) => {
                    if let Some(name) = self.asked.remove(&(*client, *request)) {
                        let life = self.lives.get(&name).map_or(0, |share| share.made);
                        self.members.insert((*client, *request), (name, life));
                    }
                }
                Said::Delivered(delivered) => {
                    let (sequence, holding) = (delivered.sequence(), delivered.holding());
                    self.goes_out(
                        (*client, *request),
                        sequence,
                        holding,
                        delivered.is_redelivered(),
                        &lost,
                    )?;
                }
                Said::Gap { items, .. } => {
                    if let Some(share) = self.share_of(*client, *request) {
                        share.told.extend(items.iter().map(|item| item.sequence));
                    }
                }
                _ => {}
            }
        }
        for client in lost {
            self.lose(client);
        }
        Ok(())
    }

    /// Groups that were made in this event, and those that are no more.
    fn note_lives(&mut self, model: &Model, terms: &[Terms]) {
        for (name, usual) in terms.iter().enumerate() {
            let Some(made) = model.life_of_group(name) else {
                self.lives.remove(&name);
                continue;
            };
            if self.lives.get(&name).is_none_or(|share| share.made != made) {
                let there = model.visible_matches(&usual.query, Order::Key);
                let share = Share {
                    made,
                    there: there.into_iter().collect(),
                    since: model.sequence,
                    ..Share::default()
                };
                self.lives.insert(name, share);
            }
        }
    }

    /// A member whose follow began and ended in one event.
    fn ended_at_once(&self, client: u32, ask: &Ask, recorder: &Recorder) -> Option<usize> {
        let name = match ask {
            Ask::Follow { until_live: false, .. } => None,
            Ask::Follow { group: Some(share), .. } => Some(share.name),
            Ask::Follow {
                requirement: Some(number),
                ..
            } => self.uses.get(&(client, *number)).copied(),
            _ => None,
        };
        let began = recorder
            .said
            .iter()
            .any(|(_, _, said)| matches!(**said, Said::Began(_)));
        name.filter(|name| began && self.lives.contains_key(name))
    }

    fn share_of(&mut self, client: u32, request: u64) -> Option<&mut Share> {
        let (name, life) = *self.members.get(&(client, request))?;
        self.lives.get_mut(&name).filter(|share| share.made == life)
    }

    fn goes_out(
        &mut self,
        member: (u32, u64),
        sequence: u64,
        holding: u32,
        is_marked: bool,
        lost: &BTreeSet<u32>,
    ) -> Checked {
        let Some(share) = self.share_of(member.0, member.1) else {
            return Ok(());
        };
        let whom = format!("version {sequence} goes to client {}", member.0);
        if let Some((client, _)) = share.with.insert(sequence, (member.0, holding)) {
            if !lost.contains(&client) {
                return Err(format!("{whom}, but client {client} has it"));
            }
            share.was_out.insert(sequence);
        }
        if share.done.contains(&sequence) {
            return Err(format!("{whom} after it was completed"));
        }
        if share.was_out.contains(&sequence) != is_marked {
            return Err(format!("{whom}, marked as redelivered: {is_marked}"));
        }
        Ok(())
    }

    fn come_back(&mut self, client: u32, holdings: &[(u32, u64)], back: Option<Back>) -> Checked {
        for share in self.lives.values_mut() {
            for &(holding, sequence) in holdings {
                if share.with.get(&sequence) != Some(&(client, holding)) {
                    continue;
                }
                share.with.remove(&sequence);
                match back {
                    None if !share.done.insert(sequence) => {
                        return Err(format!("version {sequence} was completed twice"));
                    }
                    Some(Back::Undone) => _ = share.was_out.insert(sequence),
                    None | Some(Back::Unread) => {}
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self, client: u32) {
        for share in self.lives.values_mut() {
            let had: Vec<u64> = share
                .with
                .iter()
                .filter(|(_, with)| with.0 == client)
                .map(|(&one, _)| one)
                .collect();
            for sequence in had {
                share.with.remove(&sequence);
                share.was_out.insert(sequence);
            }
        }
        self.members.retain(|&(member, _), _| member != client);
    }

    /// At the end of a run, when everything was read and released.
    ///
    /// # Errors
    /// A version that a group was promised and has neither received nor had reported.
    pub fn check(&self, model: &Model, terms: &[Terms]) -> Checked {
        for (&name, share) in &self.lives {
            let is_this_life = model.life_of_group(name) == Some(share.made);
            // Without a member no client could get the gap.
            if !is_this_life || model.is_unread(name).is_some() || !model.stands_as(name, &terms[name]) {
                continue;
            }
            let lost = model.objects.iter().find(|object| {
                let sequence = object.sequence;
                (sequence > share.since || share.there.contains(&sequence))
                    && model.matches(&terms[name].query, sequence)
                    && !share.done.contains(&sequence)
                    && !share.told.contains(&sequence)
                    && !model.group_is_owed(name, sequence)
                    && !model.was_passed_over(share.made, sequence)
                    && !(terms[name].newest_only && object.fate == Fate::Superseded)
            });
            if let Some(lost) = lost {
                return Err(format!(
                    "group {name} was promised version {} ({:?}) and never completed it",
                    lost.sequence, lost.fate
                ));
            }
        }
        Ok(())
    }
}
