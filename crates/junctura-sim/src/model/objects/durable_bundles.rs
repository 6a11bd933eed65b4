//! Bundles with durable members: a wait is answered when all members are archived, or one will not be.

use std::collections::BTreeSet;

use junctura_model::Code;

use crate::model::{Checked, Going, Model, Number, Want};

/// A tree of bundles that is visible and not archived.
#[derive(Clone, Debug)]
pub(in crate::model) struct Lasting {
    tree: Vec<u64>,
    /// Durable members that are not archived.
    left: BTreeSet<u64>,
    /// The clients that have one of its bundles open, and the answers that they get then.
    openers: Vec<(Number, Want)>,
    /// A client got the answer that it will not be archived, which is checked at the end of the event.
    was_given_up: bool,
}

impl Model {
    /// Handles a visible tree of bundles with these durable members: its openers are answered now, or when these are
    /// archived.
    pub(in crate::model) fn await_members(
        &mut self,
        root: u64,
        tree: Vec<u64>,
        durable: BTreeSet<u64>,
        openers: Vec<(Number, Want)>,
    ) {
        if durable.is_empty() {
            for ((client, number), want) in openers {
                self.want(client, number, want);
            }
            return;
        }
        let lasting = Lasting {
            tree,
            left: durable,
            openers,
            was_given_up: false,
        };
        self.lasting.insert(root, lasting);
    }

    /// A request has completed a bundle: it is answered now, or when what became visible is archived.
    pub(in crate::model) fn answer_completing(&mut self, client: u32, number: u64, which: u64, answer: u64) {
        let root = self.lasting.iter().find(|(_, lasting)| lasting.tree.contains(&which));
        let Some((&root, _)) = root else {
            return self.want(client, number, Want::Done(answer));
        };
        let timeout = self.clients.get(&client).and_then(|state| state.offer_timeout);
        let deadline = timeout.map(|timeout| self.now + timeout);
        let going = Going::Lasting { root, answer, deadline };
        self.going.insert((client, number), going);
        *self.went_on.entry(client).or_default() += 1;
    }

    /// These objects are archived, or could not be.
    pub(in crate::model) fn note_members(&mut self, sequences: &[u64], fails: bool) {
        let roots: Vec<u64> = self.lasting.keys().copied().collect();
        for root in roots {
            let Some(lasting) = self.lasting.get_mut(&root) else {
                continue;
            };
            let before = lasting.left.len();
            lasting.left.retain(|sequence| !sequences.contains(sequence));
            let is_over = lasting.left.len() < before && (fails || lasting.left.is_empty());
            if is_over {
                self.end_lasting(root, fails);
            }
        }
    }

    fn end_lasting(&mut self, root: u64, fails: bool) {
        for (opener, want) in self.lasting.remove(&root).into_iter().flat_map(|one| one.openers) {
            if fails {
                self.end(opener);
                self.want(opener.0, opener.1, Want::Ended(Code::Io));
            } else {
                self.want(opener.0, opener.1, want);
            }
        }
        for (asker, answer) in self.askers(root) {
            self.end(asker);
            let want = if fails {
                Want::Failed(Some(Code::Io))
            } else {
                Want::Done(answer)
            };
            self.want(asker.0, asker.1, want);
        }
    }

    fn askers(&self, root: u64) -> Vec<(Number, u64)> {
        let of_it = self.going.iter().filter_map(|(&asker, going)| match going {
            Going::Lasting { root: its, answer, .. } if *its == root => Some((asker, *answer)),
            _ => None,
        });
        of_it.collect()
    }

    /// A client does not have a bundle open any more.
    pub(in crate::model) fn forget_opener(&mut self, opener: Number) {
        for lasting in self.lasting.values_mut() {
            lasting.openers.retain(|(one, _)| *one != opener);
        }
    }

    /// Ends an opener whose bundle will not be archived: its staged offers that still wait fail as through a request
    /// that has ended. [`Self::opener_failed`] judges whether this is allowed.
    pub(in crate::model) fn end_opener(&mut self, opener: Number) {
        if matches!(self.going.get(&opener), Some(Going::Bundle(_))) {
            self.going.remove(&opener);
        }
    }

    /// Whether an opener may get the answer that its bundle will not be archived.
    pub(in crate::model) fn opener_failed(&mut self, opener: Number, code: Option<Code>) -> bool {
        let waits = |lasting: &&mut Lasting| lasting.openers.iter().any(|(one, _)| *one == opener);
        let lasting = self.lasting.values_mut().find(waits);
        let Some(lasting) = lasting.filter(|_| code == Some(Code::Io)) else {
            return false;
        };
        lasting.was_given_up = true;
        self.end(opener);
        self.forget_opener(opener);
        true
    }

    /// The same of a request that completed one.
    pub(in crate::model) fn asker_gave_up(&mut self, root: u64) {
        if let Some(lasting) = self.lasting.get_mut(&root) {
            lasting.was_given_up = true;
        }
    }

    /// Checks that exactly the requests that wait for a bundle that will not be archived get an answer.
    pub(in crate::model) fn check_lasting(&mut self) -> Checked {
        for (root, lasting) in &self.lasting {
            let is_doomed = lasting.left.iter().any(|&sequence| self.object(sequence).owed == 0);
            if lasting.was_given_up && !is_doomed {
                return Err(format!("bundle {root} may still be archived, but a request has failed"));
            }
            if is_doomed && !(lasting.openers.is_empty() && self.askers(*root).is_empty()) {
                return Err(format!(
                    "a request waits until bundle {root} is archived, which no client does"
                ));
            }
        }
        self.lasting.retain(|_, lasting| !lasting.was_given_up);
        Ok(())
    }
}
