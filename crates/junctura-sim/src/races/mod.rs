//! Races without randomness: a few clients with a few requests each, in every order in which the server can read them.
//!
//! A [`Scene`] gives the requests of each client; [`orders`] yields each way to interleave them; [`play`] plays one
//! order in a world in which nothing else happens and no time passes. The reference model judges every event as in any
//! other run, and beside it a `Witness` that is independent of the model. At the end no request may wait: each withdraw
//! is answered, and each demand unless no object can answer it.

mod witness;

use std::rc::Rc;

use crate::clients::client::Doing;
use crate::clients::requests::{Aim, Ask, Offer, Place, Share, Stays, Terms};
use crate::run::rng::Rng;
use crate::run::universe::{AGAIN, ONCE, Query, Universe};
use crate::world::{Checked, World, own_fault};

use witness::Witness;

/// An action of a client at its turn. All actions are about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names explain themselves")]
pub enum Move {
    Offer,
    Withdraw,
    /// As the scene has it: by a name, for itself, or as a member.
    Require,
    /// As the scene has it: by a follow or by a demand, through its requirement.
    Read,
    /// Of all that it has.
    Release,
    Retract,
    /// Its connection ends.
    Die,
}

/// The owner of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The client that made it.
    Client,
    /// A name.
    Name,
    /// A name, and members share it.
    Group,
}

/// A race: the conditions common to all its orders.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one dimension of the race")]
pub struct Scene {
    /// The moves of each client.
    pub scripts: Vec<Vec<Move>>,
    /// The object is there when the race begins.
    pub is_there: bool,
    /// Another offer of the key supersedes; else it is refused.
    pub supersedes: bool,
    /// The object stays until one client has released it; else until it is withdrawn.
    pub goes_when_released: bool,
    /// Whose requirements there are.
    pub owner: Owner,
    /// They are owed the newest version only; else all.
    pub newest_only: bool,
    /// Readers follow; else they demand.
    pub follows: bool,
    /// Withdraws do not wait.
    pub force: bool,
}

impl Scene {
    /// Each combination of what can be so, for these scripts. No group is read by demands.
    pub fn all(scripts: &[&[Move]]) -> impl Iterator<Item = Self> + use<> {
        let scripts: Vec<Vec<Move>> = scripts.iter().map(|script| script.to_vec()).collect();
        let owners = [Owner::Client, Owner::Name, Owner::Group];
        let all = owners.into_iter().flat_map(move |owner| {
            let scripts = scripts.clone();
            (0..1_u32 << 6).map(move |bits| {
                let is = |bit: u32| bits & 1 << bit != 0;
                Self {
                    scripts: scripts.clone(),
                    is_there: is(0),
                    supersedes: is(1),
                    goes_when_released: is(2),
                    owner,
                    newest_only: is(3),
                    follows: is(4),
                    force: is(5),
                }
            })
        });
        all.filter(|scene| scene.follows || scene.owner != Owner::Group)
    }

    fn key(&self, universe: &Universe) -> usize {
        let schema = if self.supersedes { AGAIN } else { ONCE };
        universe
            .keys
            .iter()
            .position(|key| key.schema == schema)
            .unwrap_or_default()
    }

    fn terms(&self) -> Terms {
        Terms {
            query: Query::All,
            newest_only: self.newest_only,
            time_to_live_ms: None,
            breaks_on_full: false,
            quota: None,
            stuck_after_ms: None,
            is_group: self.owner == Owner::Group,
        }
    }
}

/// Every order in which scripts of these lengths can be interleaved: whose turn it is, each time.
pub fn orders(lengths: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let mut next: Option<Vec<usize>> = Some(
        lengths
            .iter()
            .enumerate()
            .flat_map(|(place, &length)| std::iter::repeat_n(place, length))
            .collect(),
    );
    std::iter::from_fn(move || {
        let order = next.take()?;
        next = next_permutation(&order);
        Some(order)
    })
}

/// The next in lexical order.
fn next_permutation(order: &[usize]) -> Option<Vec<usize>> {
    let rises = order.windows(2).rposition(|pair| pair[0] < pair[1])?;
    let above = order.iter().rposition(|&place| place > order[rises])?;
    let mut next = order.to_vec();
    next.swap(rises, above);
    next[rises + 1..].reverse();
    Some(next)
}

/// Plays every `stride`th order of a scene, from the order `first` on; gives how many.
///
/// # Errors
/// The scene, the order and the promise that was broken, with what happened.
pub fn play_all(scene: &Scene, first: usize, stride: usize) -> Result<u64, String> {
    let universe = Rc::new(Universe::new(1, 1).map_err(|error| own_fault(&error))?);
    let lengths: Vec<usize> = scene.scripts.iter().map(Vec::len).collect();
    let mut played = 0;
    for order in orders(&lengths).skip(first).step_by(stride) {
        if play(scene, &order, &universe, false).is_err() {
            let told = play(scene, &order, &universe, true).err().unwrap_or_default();
            return Err(format!("{told}\norder {order:?} of {scene:?}"));
        }
        played += 1;
    }
    Ok(played)
}

/// Plays one order.
///
/// # Errors
/// The promise that was broken, after what happened where that is `told`.
pub fn play(scene: &Scene, order: &[usize], universe: &Rc<Universe>, told: bool) -> Checked {
    let mut race = Race::new(scene, universe)?;
    race.world.trace = told.then(Vec::new);
    let outcome = race.play(order);
    outcome.map_err(|why| {
        let mut lines = race.world.trace.take().unwrap_or_default();
        lines.push(why);
        lines.join("\n")
    })
}

/// A scene that is being played.
struct Race<'a> {
    scene: &'a Scene,
    key: usize,
    world: World,
    rng: Rng,
    witness: Witness,
    /// The last requirement that each client made for itself.
    made: Vec<Option<u64>>,
}

impl<'a> Race<'a> {
    fn new(scene: &'a Scene, universe: &Rc<Universe>) -> Result<Self, String> {
        let plan = crate::run::plan::Plan::calm(scene.scripts.len());
        let world = World::of(plan, Rc::clone(universe), vec![scene.terms()], false);
        Ok(Self {
            scene,
            key: scene.key(universe),
            world: world.map_err(|error| own_fault(&error))?,
            rng: Rng::of_step(0, 0),
            witness: Witness::new(scene),
            made: vec![None; scene.scripts.len()],
        })
    }

    fn play(&mut self, order: &[usize]) -> Checked {
        for place in 0..self.made.len() {
            self.world.connect(place)?;
            let hello = Ask::Hello {
                wrong_version: false,
                offer_timeout_ms: None,
                visits: false,
                component: None,
            };
            self.world.ask(place, hello, Doing::Hello);
            self.happens(place)?;
        }
        if self.scene.is_there {
            self.moves(0, Move::Offer)?;
        }
        let mut turns = vec![0; self.made.len()];
        for &place in order {
            let turn: &mut usize = &mut turns[place];
            let next = self.scene.scripts[place][*turn];
            *turn += 1;
            self.moves(place, next)?;
        }
        self.comes_to_its_end()
    }

    fn moves(&mut self, place: usize, next: Move) -> Checked {
        if self.world.clients[place].is_none() {
            return Ok(());
        }
        match next {
            Move::Offer => self.offer(place)?,
            Move::Withdraw => {
                let ask = Ask::Withdraw {
                    key: self.key,
                    timeout_ms: None,
                    force: self.scene.force,
                };
                self.world.ask(place, ask, Doing::Withdraw);
            }
            Move::Require => self.require(place),
            Move::Read => self.read(place),
            Move::Release => self.world.release_all(place),
            Move::Retract if self.scene.owner != Owner::Client => {
                self.world.ask(place, Ask::Retract(0), Doing::Withdraw);
            }
            Move::Retract => {
                if let Some(number) = self.made[place].take() {
                    self.world.ask(place, Ask::Stop(number), Doing::Stop(number));
                }
            }
            Move::Die => self.world.die(place, &mut self.rng),
        }
        self.happens(place)
    }

    fn offer(&mut self, place: usize) -> Checked {
        let universe = Rc::clone(&self.world.universe);
        let record = universe.record(&universe.keys[self.key], None);
        self.world.payloads += 1;
        let offer = Offer {
            key: self.key,
            size: None,
            record: record.map_err(|error| own_fault(&error))?,
            payload: self.world.payloads,
            length: 8,
            place: Place::Inline,
            checksum: None,
            stays: if self.scene.goes_when_released {
                Stays::UntilReleased(1)
            } else {
                Stays::UntilWithdrawn
            },
            durable: false,
            if_wanted: false,
            malformed: false,
        };
        self.world
            .ask(place, Ask::Offer(offer), Doing::Offer(Place::Inline, false));
        Ok(())
    }

    fn require(&mut self, place: usize) {
        let terms = self.scene.terms();
        if self.scene.owner == Owner::Client {
            self.made[place] = Some(self.world.require_on(place, terms));
        } else {
            let ask = Ask::Require { terms, name: Some(0) };
            self.world.ask(place, ask, Doing::Use(0));
        }
    }

    fn read(&mut self, place: usize) {
        let of_client = self.made[place];
        match (self.scene.owner, self.scene.follows) {
            (Owner::Client, true) => {
                if let Some(number) = of_client {
                    self.world.follow_through(place, number, 8);
                }
            }
            (Owner::Name, true) => self.world.follow_named(place, (None, Some(0)), 8, false),
            (Owner::Group, _) => {
                let share = Share { name: 0, terms: None };
                self.world.share(place, share, 8, false);
            }
            (owner, false) => {
                let client = self.world.clients[place].as_ref();
                let wish = of_client.and_then(|number| match client?.doing.get(&number) {
                    Some(&Doing::Require(wish)) => Some(wish),
                    _ => None,
                });
                let ask = Ask::Demand {
                    aim: Aim::Key(self.key),
                    timeout_ms: None,
                    requirement: of_client,
                    name: (owner == Owner::Name).then_some(0),
                };
                self.world.ask(place, ask, Doing::Demand(wish));
            }
        }
    }

    /// The server reads the requests of a client; then each client reads the replies.
    fn happens(&mut self, place: usize) -> Checked {
        let Some(client) = &self.world.clients[place] else {
            return Ok(());
        };
        let id = client.id;
        if client.dead {
            self.witness.loses(id);
        }
        if let Some((number, ask, _)) = client.up.front() {
            self.witness.reads((id, *number), ask);
        } else if !client.dead {
            return Ok(());
        }
        self.world.serve(place, &mut self.rng)?;
        self.witness.hears(&self.world)?;
        for place in 0..self.made.len() {
            while self.world.receive(place, &mut self.rng, true)? {}
        }
        Ok(())
    }

    fn comes_to_its_end(&mut self) -> Checked {
        let (world, rng) = (&mut self.world, &mut self.rng);
        world.come_to_rest(rng)?;
        world.read_requirements();
        world.come_to_rest(rng)?;
        world.read_named();
        world.come_to_rest(rng)?;
        let is_empty = world.core.stat().objects.visible == 0;
        for client in world.clients.iter().flatten() {
            for (number, doing) in &client.doing {
                let waits = match doing {
                    Doing::Demand(_) => !is_empty,
                    Doing::Require(_) | Doing::Use(_) | Doing::Follow(_) | Doing::Loose => false,
                    _ => true,
                };
                if waits {
                    return Err(format!("client {} waits for {number} for ever: {doing:?}", client.id));
                }
            }
        }
        world.end(rng)
    }
}
