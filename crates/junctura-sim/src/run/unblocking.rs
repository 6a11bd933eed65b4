//! Unblocking: the change that the explanation of a wait names ends the wait, or moves it on to another cause.
//!
//! ```text
//!   the steps of a run --> waits --pick one--> change the last link of its explanation --> has it ended, or another cause? --.
//!                           ^                                                                                                   |
//!                           '---------------------------------------- until nothing waits <-------------------------------------'
//! ```
//! The changes are made from outside the run: an object is offered that a demand matches, a requirement ends, a bundle gets its members,
//! memory is freed. The reference model has judged the steps before; it takes no part here.

use std::sync::Arc;

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Schema};
use junctura_wire::body::{BundleRequest, ForgetRequest, Hello, RetractRequest, TargetBody, WithdrawRequest};
use junctura_wire::fixed::{INLINE, OfferHead};
use junctura_wire::reasons::{
    BundleReference, KeepersRequest, MemoryKeepers, RequirementReference, WaitingRequest, WaitsRequest,
};
use junctura_wire::{Request, VERSION};

use crate::clients::replies::Said;
use crate::run::rng::Rng;
use crate::world::{World, own_fault, spilled_checksum};

/// Waits of one run that are judged.
const JUDGED_MAX: u64 = 200;
/// Turns of the server after which unfinished deferred work is a fault.
const TURNS_MAX: usize = 10_000;
/// Times that pass while the server makes room.
const PASSES_MAX: usize = 200;

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The wait must have ended, or have another cause.
    Made,
    /// What was to be done waits itself.
    Waits,
    /// It cannot be made in this world.
    Impossible,
}

/// Makes a run of so many steps, and unblocks what waits then. Returns how many waits were judged.
///
/// # Errors
/// A broken promise, or a wait that its explanation does not end.
pub fn unblock(seed: u64, steps: u64) -> Result<u64, String> {
    let mut world = World::new(seed, false).map_err(|error| own_fault(&error))?;
    world.populate(&mut Rng::of_step(seed, u64::MAX - 1))?;
    for step in 0..steps {
        world.step(&mut Rng::of_step(seed, step))?;
    }
    let mut rng = Rng::of_step(seed, u64::MAX - 2);
    Unblocking::new(world)?.unblock_all(&mut rng)
}

struct Unblocking {
    world: World,
    schemas: Vec<Arc<Schema>>,
    helper: u32,
    number: u64,
}

impl Unblocking {
    fn new(mut world: World) -> Result<Self, String> {
        let schemas = world.universe.schemas.clone();
        let helper = world.core.join().map_err(|error| error.to_string())?;
        let mut unblocking = Self {
            world,
            schemas,
            helper,
            number: 0,
        };
        unblocking.greet();
        unblocking.settle()?;
        Ok(unblocking)
    }

    fn greet(&mut self) {
        let hello = Hello {
            version: VERSION,
            name: "helper".into(),
            visits: true,
            ..Hello::default()
        };
        self.ask(&Request::Hello(hello));
    }

    fn unblock_all(&mut self, rng: &mut Rng) -> Result<u64, String> {
        let mut judged = 0;
        for _ in 0..2 * JUDGED_MAX {
            let waits = self.waits();
            if judged >= JUDGED_MAX || waits.is_empty() {
                break;
            }
            let picked = waits[rng.below(waits.len())].clone();
            if self.judge(&picked)? {
                judged += 1;
            }
        }
        Ok(judged)
    }

    /// Changes what a wait is explained by. Whether it could be judged.
    fn judge(&mut self, wait: &WaitingRequest) -> Result<bool, String> {
        let made = self.change(wait)?;
        self.settle()?;
        let after = self.find(wait);
        let is_over = after
            .as_ref()
            .is_none_or(|after| explanation(after) != explanation(wait));
        match made {
            Change::Made if is_over => Ok(true),
            Change::Made => Err(format!(
                "{wait:?}\nwaits still, after the change that it names: {after:?}\nkeepers: {:?}",
                self.keepers()
            )),
            Change::Waits => Ok(true),
            Change::Impossible => {
                self.leave(wait.client.client);
                self.settle().map(|()| false)
            }
        }
    }

    fn change(&mut self, wait: &WaitingRequest) -> Result<Change, String> {
        let bundle = wait.on.iter().find_map(|on| on.bundle.as_ref());
        Ok(match (wait.because.as_str(), bundle) {
            ("nothing_matches", _) => self.offer_a_match(&wait.what),
            ("staged" | "members" | "unsealed" | "nested" | "enclosing", Some(bundle)) => self.complete(bundle),
            ("offer_waits" | "offers", _) => self.is_explained(wait)?,
            ("behind", _) => self.end_first_lease(wait),
            ("working", _) => self.let_the_server_work(wait)?,
            ("memory" | "records" | "owed_limit" | "owed" | "followers" | "unarchived", _) if !wait.on.is_empty() => {
                self.end_references(wait)
            }
            ("memory" | "records", _) => self.free_everything(wait)?,
            (because, _) => return Err(format!("{because} names nothing to change: {wait:?}")),
        })
    }

    /// The next link is an offer of another client, or of its own, that waits and is explained itself.
    fn is_explained(&self, wait: &WaitingRequest) -> Result<Change, String> {
        let client = wait.on.iter().find_map(|on| on.client.as_ref()).map(|one| one.client);
        let waits = self.waits();
        let mut offers = waits.iter().filter(|other| other.kind == "offer");
        if offers.any(|offer| Some(offer.client.client) == client) {
            return Ok(Change::Waits);
        }
        Err(format!("no offer waits that {wait:?} names"))
    }

    fn offer_a_match(&mut self, selector: &str) -> Change {
        let Ok(selectors) = SelectorSet::parse(selector, &self.schemas) else {
            return Change::Impossible;
        };
        for (schema, record) in self.candidates() {
            let matches = selectors
                .of(usize::from(schema))
                .is_some_and(|selector| selector.matches(junctura_model::RecordRef::trusted(&record)));
            if !matches {
                continue;
            }
            let (head, inline) = inline_head(schema, &record);
            let request = Request::Offer {
                head,
                record: &record,
                inline: &inline,
            };
            match self.ask(&request) {
                Some(Said::Offered(_)) => return Change::Made,
                None => return Change::Waits,
                Some(_) => {}
            }
        }
        Change::Impossible
    }

    /// Every record that an object may have.
    fn candidates(&self) -> Vec<(u16, Vec<u8>)> {
        let universe = &self.world.universe;
        let sizes = [None, Some(0), Some(1), Some(2), Some(3)];
        let records = universe.keys.iter().flat_map(|key| {
            sizes
                .iter()
                .filter_map(|&size| Some((key.schema, universe.record(key, size).ok()?.to_vec())))
        });
        records.collect()
    }

    /// Gives a bundle the members that it lacks, or seals it. One without a path ends with its clients.
    fn complete(&mut self, bundle: &BundleReference) -> Change {
        if bundle.path.is_empty() {
            for opener in &bundle.openers {
                self.leave(opener.client);
            }
            return Change::Made;
        }
        let open = BundleRequest {
            path: Some(bundle.path.as_str().into()),
            ..BundleRequest::default()
        };
        let Some(Said::Began(_)) = self.ask(&Request::Bundle(open)) else {
            return Change::Impossible;
        };
        let through = self.number;
        let Some(declared) = bundle.declared else {
            return match self.ask(&Request::Seal(through)) {
                Some(Said::Failed(_)) => Change::Impossible,
                _ => Change::Made,
            };
        };
        for (schema, record) in self.candidates() {
            let (head, inline) = inline_head(schema, &record);
            let request = Request::Stage {
                bundle: through,
                head,
                record: &record,
                inline: &inline,
            };
            let answer = self.ask(&request);
            let there = self.members_of(&bundle.path);
            match answer {
                None => return Change::Waits,
                Some(Said::Offered(_)) if there.is_none_or(|there| there >= declared || there > bundle.members) => {
                    return Change::Made;
                }
                Some(_) => {}
            }
        }
        Change::Impossible
    }

    /// Members of a bundle that waits, as waits name it.
    fn members_of(&self, path: &str) -> Option<u64> {
        let waits = self.waits();
        let mut bundles = waits
            .iter()
            .flat_map(|wait| &wait.on)
            .filter_map(|on| on.bundle.as_ref());
        bundles.find(|bundle| bundle.path == path).map(|bundle| bundle.members)
    }

    fn end_first_lease(&mut self, wait: &WaitingRequest) -> Change {
        let Some(first) = wait.on.iter().find_map(|on| on.client.as_ref()) else {
            return Change::Impossible;
        };
        if first.client == wait.client.client {
            return Change::Impossible;
        }
        self.leave(first.client);
        Change::Made
    }

    fn let_the_server_work(&mut self, wait: &WaitingRequest) -> Result<Change, String> {
        for _ in 0..PASSES_MAX {
            self.settle()?;
            let is_same = |after: &WaitingRequest| explanation(after) == explanation(wait);
            if !self.find(wait).as_ref().is_some_and(is_same) {
                return Ok(Change::Made);
            }
            let Some(deadline) = self.world.core.deadline() else {
                break;
            };
            self.world.now = self.world.now.max(deadline);
            self.tick();
        }
        Ok(Change::Made)
    }

    fn end_references(&mut self, wait: &WaitingRequest) -> Change {
        for on in &wait.on {
            if let Some(requirement) = &on.requirement {
                self.end_requirement(requirement);
            } else if let Some(client) = &on.client {
                self.leave(client.client);
            }
        }
        Change::Made
    }

    /// One without a name ends with its client.
    fn end_requirement(&mut self, requirement: &RequirementReference) {
        if requirement.name.is_empty() {
            for reader in &requirement.readers {
                self.leave(reader.client);
            }
        } else {
            let name = requirement.name.as_str().into();
            self.ask(&Request::Retract(RetractRequest { name }));
        }
    }

    /// No requirement keeps memory: objects, what clients hold and lease, and bundles do.
    fn free_everything(&mut self, wait: &WaitingRequest) -> Result<Change, String> {
        let own = wait.client.client;
        let mut is_staged = false;
        // Another offer that waits may take what becomes free, and its object be held by a client that held nothing before.
        for _ in 0..PASSES_MAX {
            self.withdraw_everything(wait)?;
            let others = self.dismiss_keepers(own, &mut is_staged);
            self.settle()?;
            if others == 0 || self.find(wait).is_none() {
                break;
            }
        }
        let is_over = self.find(wait).is_none();
        let keepers = self.keepers();
        let clients = keepers.iter().flat_map(|part| &part.clients);
        let is_own = clients.into_iter().any(|one| one.client.client == own);
        Ok(if !is_over && (is_own || is_staged) {
            Change::Impossible
        } else {
            Change::Made
        })
    }

    /// Withdraws all objects, and frees their keys. Offers that wait take what becomes free, until none is left.
    fn withdraw_everything(&mut self, wait: &WaitingRequest) -> Result<(), String> {
        for _ in 0..PASSES_MAX {
            let answer = self.ask(&Request::WithdrawAll(WithdrawRequest {
                target: TargetBody::selector(""),
                timeout_ms: None,
                force: true,
            }));
            if matches!(answer, Some(Said::Failed(Some(Code::LimitExceeded)))) {
                // Its bundles and offers that wait are as many requests as a client may have: a new helper has none.
                self.leave(self.helper);
            }
            self.settle()?;
            let is_kept = self.keepers().iter().any(|part| !part.sums.is_empty());
            if !is_kept || self.find(wait).is_none() {
                break;
            }
        }
        self.ask(&Request::Forget(ForgetRequest {
            target: TargetBody::selector(""),
        }));
        Ok(())
    }

    /// Ends the other clients that hold memory, or have a bundle open. Returns how many.
    fn dismiss_keepers(&mut self, own: u32, is_staged: &mut bool) -> usize {
        let keepers = self.keepers();
        *is_staged |= keepers.iter().any(|part| !part.bundles.is_empty());
        let holders = keepers
            .iter()
            .flat_map(|part| &part.clients)
            .map(|one| one.client.client);
        let bundles = keepers.iter().flat_map(|part| &part.bundles);
        let openers = bundles.flat_map(|bundle| &bundle.openers).map(|opener| opener.client);
        let mut others: Vec<u32> = holders.chain(openers).filter(|&client| client != own).collect();
        others.sort_unstable();
        others.dedup();
        for &client in &others {
            self.leave(client);
        }
        others.len()
    }

    fn keepers(&self) -> Vec<MemoryKeepers> {
        let mut asked = KeepersRequest::default();
        let mut parts = Vec::new();
        loop {
            let part = self.world.core.reasons().keepers(&asked);
            asked.after = part.next;
            parts.push(part);
            if asked.after.is_none() {
                return parts;
            }
        }
    }

    fn waits(&self) -> Vec<WaitingRequest> {
        let mut asked = WaitsRequest {
            after: None,
            limit: 500,
        };
        let mut found = Vec::new();
        loop {
            let page = self.world.core.reasons().waits(&asked);
            found.extend(page.requests);
            asked.after = page.next;
            if asked.after.is_none() {
                return found;
            }
        }
    }

    fn find(&self, wait: &WaitingRequest) -> Option<WaitingRequest> {
        let is_it = |other: &WaitingRequest| (other.client.client, other.request) == (wait.client.client, wait.request);
        self.waits().into_iter().find(is_it)
    }

    /// Asks as the helper; the first answer, if there is one already.
    fn ask(&mut self, request: &Request<'_>) -> Option<Said> {
        self.number += 1;
        let (helper, number) = (self.helper, self.number);
        let world = &mut self.world;
        world.recorder.begin();
        world
            .core
            .request(world.now, helper, number, request, &mut world.recorder);
        let mut said = world.recorder.said.iter();
        let answer = said.find(|(client, request, _)| (*client, *request) == (helper, number));
        answer.map(|(.., said)| (**said).clone())
    }

    fn leave(&mut self, client: u32) {
        let world = &mut self.world;
        world
            .core
            .leave(world.now, client, "it was in the way", &mut world.recorder);
        if client == self.helper
            && let Ok(helper) = self.world.core.join()
        {
            self.helper = helper;
            self.greet();
        }
    }

    fn tick(&mut self) {
        let world = &mut self.world;
        world.core.tick(world.now, &mut world.recorder);
    }

    /// The server does what it has deferred, and the file tier writes.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..TURNS_MAX {
            if self.world.core.is_behind() || self.world.core.is_delivering() {
                self.tick();
            } else if let Some(job) = self.world.recorder.work(true) {
                let world = &mut self.world;
                let checksum = Ok(spilled_checksum(job.payload));
                world.core.spilled(world.now, job.job, checksum, &mut world.recorder);
            } else {
                return Ok(());
            }
        }
        Err("deferred work does not end".to_owned())
    }
}

/// What identifies an explanation: the cause, and what it names.
fn explanation(wait: &WaitingRequest) -> (String, String, Vec<(u8, u64, u64)>) {
    let named = wait
        .on
        .iter()
        .map(|on| match (&on.requirement, &on.bundle, &on.client) {
            (Some(one), _, _) => (0, u64::from(one.number), one.owed),
            (None, Some(one), _) => (1, one.number, one.members),
            (None, None, Some(one)) => (2, u64::from(one.client), 0),
            (None, None, None) => (3, 0, 0),
        });
    (wait.because.clone(), wait.what.clone(), named.collect())
}

fn inline_head(schema: u16, record: &[u8]) -> (OfferHead, [u8; 8]) {
    let inline = [0; 8];
    let head = OfferHead {
        schema: schema.into(),
        flags: INLINE.into(),
        record_length: (record.len() as u32).into(),
        length: (inline.len() as u64).into(),
        ..OfferHead::default()
    };
    (head, inline)
}
