//! Watches a race from outside: it sees only messages that the server read and sent.
//!
//! It checks these promises between readers and withdraws:
//!
//! - a withdraw that is not forced succeeds only when each requirement that the server had read before it, and that was
//!   owed the object, has released it, was retracted, or has ended with its client;
//! - a withdraw that succeeded leaves no object visible that was so when the server read it (an object offered while it
//!   waits is later, and stays);
//! - no follow through a requirement receives a version that was released through it (a demand may ask for it again).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Scene;
use crate::clients::replies::Said;
use crate::clients::requests::Ask;
use crate::world::{Checked, World};

/// A requirement: of a client's request, or of the name, in one of its lives.
type Claim = (u32, u64);

/// The state when the server read it.
struct Withdraw {
    /// The claims that it has to wait for.
    waits: Vec<(Claim, u64)>,
    /// The object that it removes.
    newest: Option<u64>,
}

/// See the module's page.
pub(super) struct Witness {
    newest_only: bool,
    force: bool,
    /// The visible object.
    visible: Option<u64>,
    /// The objects that each existing requirement has not released.
    owed: BTreeMap<Claim, BTreeSet<u64>>,
    done: BTreeSet<(Claim, u64)>,
    /// The requirement of the name, while there is one, and how often there was.
    named: Option<Claim>,
    lives: u64,
    /// Requests that read through requirements.
    readers: BTreeMap<(u32, u64), Claim>,
    /// The part that is demands.
    demands: BTreeSet<(u32, u64)>,
    /// Deliveries: the object, and its requirement.
    out: BTreeMap<(u32, u32), (Claim, u64)>,
    withdraws: BTreeMap<(u32, u64), Withdraw>,
    /// The effect on the requirements if the server accepts the request that it has read.
    asked: Option<((u32, u64), Ask)>,
}

impl Witness {
    pub(super) fn new(scene: &Scene) -> Self {
        Self {
            newest_only: scene.newest_only,
            force: scene.force,
            visible: None,
            owed: BTreeMap::new(),
            done: BTreeSet::new(),
            named: None,
            lives: 0,
            readers: BTreeMap::new(),
            demands: BTreeSet::new(),
            out: BTreeMap::new(),
            withdraws: BTreeMap::new(),
            asked: None,
        }
    }

    pub(super) fn loses(&mut self, client: u32) {
        self.owed.retain(|claim, _| claim.0 != client);
        self.withdraws.retain(|number, _| number.0 != client);
        self.out.retain(|number, _| number.0 != client);
    }

    /// The server is about to read a request.
    pub(super) fn reads(&mut self, number: (u32, u64), ask: &Ask) {
        match ask {
            Ask::Withdraw { .. } => {
                let of = |(&claim, owed): (&Claim, &BTreeSet<u64>)| owed.iter().map(|&one| (claim, one)).collect();
                let waits: Vec<Vec<(Claim, u64)>> = self.owed.iter().map(of).collect();
                let (waits, newest) = (waits.concat(), self.visible);
                self.withdraws.insert(number, Withdraw { waits, newest });
            }
            Ask::Release(holdings) | Ask::ReleaseMapped(holdings) => {
                for (holding, _) in holdings {
                    if let Some((claim, sequence)) = self.out.remove(&(number.0, *holding)) {
                        self.done.insert((claim, sequence));
                        if let Some(owed) = self.owed.get_mut(&claim) {
                            owed.remove(&sequence);
                        }
                    }
                }
            }
            Ask::Follow { requirement, .. } | Ask::Demand { requirement, .. } => {
                let claim = requirement.map(|of| (number.0, of)).or(self.named);
                self.readers.extend(claim.map(|claim| (number, claim)));
                if matches!(ask, Ask::Demand { .. }) {
                    self.demands.insert(number);
                }
            }
            _ => {}
        }
        self.asked = Some((number, ask.clone()));
    }

    /// Takes the server's replies to that.
    pub(super) fn hears(&mut self, world: &World) -> Checked {
        let asked = self.asked.take();
        let answer = |number: (u32, u64)| {
            let said = world
                .recorder
                .said
                .iter()
                .find(|(client, request, _)| (*client, *request) == number);
            said.map(|(.., said)| Rc::clone(said))
        };
        if let Some((number, ask)) = asked {
            self.takes_effect(number, &ask, answer(number).as_deref());
        }
        for (client, request, said) in &world.recorder.said {
            let number = (*client, *request);
            match &**said {
                Said::Offered(sequence) => self.offered(*sequence),
                Said::Delivered(delivered) => {
                    let Some(&claim) = self.readers.get(&number) else {
                        continue;
                    };
                    let sequence = delivered.sequence();
                    let is_asked_for = self.demands.contains(&number);
                    if !is_asked_for && self.done.contains(&(claim, sequence)) {
                        return Err(format!(
                            "version {sequence} is delivered through {claim:?}, which had released it"
                        ));
                    }
                    self.out.insert((number.0, delivered.holding()), (claim, sequence));
                }
                Said::Done(taken) => {
                    if let Some(withdraw) = self.withdraws.remove(&number)
                        && *taken > 0
                    {
                        self.withdrawn(number, &withdraw, world)?;
                    }
                }
                Said::Failed(_) => _ = self.withdraws.remove(&number),
                _ => {}
            }
        }
        self.visible = self.visible.filter(|_| world.core.stat().objects.visible > 0);
        Ok(())
    }

    fn takes_effect(&mut self, number: (u32, u64), ask: &Ask, answer: Option<&Said>) {
        let is_agreed = !matches!(answer, Some(Said::Failed(_)));
        match ask {
            Ask::Require { name: None, .. } if is_agreed => {
                self.owed.insert(number, self.visible.into_iter().collect());
            }
            Ask::Require { name: Some(_), .. } if is_agreed && self.named.is_none() => {
                self.lives += 1;
                self.named = Some((0, self.lives));
                self.owed.insert((0, self.lives), self.visible.into_iter().collect());
            }
            Ask::Retract(_) if is_agreed => {
                if let Some(claim) = self.named.take() {
                    self.owed.remove(&claim);
                }
            }
            Ask::Stop(of) => _ = self.owed.remove(&(number.0, *of)),
            _ => {}
        }
    }

    fn offered(&mut self, sequence: u64) {
        self.visible = Some(sequence);
        for owed in self.owed.values_mut() {
            if self.newest_only {
                owed.clear();
            }
            owed.insert(sequence);
        }
    }

    fn withdrawn(&mut self, number: (u32, u64), withdraw: &Withdraw, world: &World) -> Checked {
        let still = |(claim, one): &&(Claim, u64)| self.owed.get(claim).is_some_and(|owed| owed.contains(one));
        if !self.force
            && let Some((claim, sequence)) = withdraw.waits.iter().find(still)
        {
            return Err(format!(
                "withdraw {number:?} succeeds while {claim:?}, made before it, has not released version {sequence}"
            ));
        }
        for owed in self.owed.values_mut() {
            owed.retain(|&one| Some(one) > withdraw.newest);
        }
        if world.core.stat().objects.visible > 0 && self.visible <= withdraw.newest {
            return Err(format!("withdraw {number:?} succeeds and leaves something"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::{Owner, Race, Scene};
    use crate::clients::replies::Said;
    use crate::clients::requests::Ask;
    use crate::run::universe::Universe;
    use crate::world::{Checked, own_fault};

    const REQUIREMENT: (u32, u64) = (1, 2);

    /// A server that answers at once that a withdraw is done, after a client has asked for `last`.
    fn withdraws_at_once(force: bool, last: &Ask) -> Checked {
        let universe = Rc::new(Universe::new(1, 1).map_err(|error| own_fault(&error))?);
        let is_it = |scene: &Scene| scene.owner == Owner::Client && scene.force == force;
        let scene = Scene::all(&[]).find(is_it).ok_or("there is no such scene")?;
        let mut race = Race::new(&scene, &universe)?;
        let (terms, withdraw) = (scene.terms(), (2, 3));
        let asks_to_withdraw = Ask::Withdraw {
            key: 0,
            timeout_ms: None,
            force,
        };
        let said = [
            (REQUIREMENT, Ask::Require { terms, name: None }, Some(Said::Began(0))),
            ((2, 2), Ask::Stat, Some(Said::Offered(1))),
            ((1, 3), last.clone(), None),
            (withdraw, asks_to_withdraw, Some(Said::Done(1))),
        ];
        for ((client, request), ask, answer) in said {
            race.witness.reads((client, request), &ask);
            race.world.recorder.begin();
            race.world
                .recorder
                .said
                .extend(answer.map(|said| (client, request, Rc::new(said))));
            race.witness.hears(&race.world)?;
        }
        Ok(())
    }

    #[test]
    fn a_withdraw_that_overtakes_a_requirement_is_seen() {
        let told = withdraws_at_once(false, &Ask::Stat).err().unwrap_or_default();
        assert!(
            told.contains("succeeds while (1, 2), made before it, has not released version 1"),
            "{told}"
        );
        assert_eq!(withdraws_at_once(true, &Ask::Stat), Ok(()));
        assert_eq!(withdraws_at_once(false, &Ask::Stop(REQUIREMENT.1)), Ok(()));
    }
}
