//! The core's promises, one small case each. Clients are numbers, a test sets the time, and replies of the core are
//! kept as text.

mod access;
mod bundles;
mod deferred;
mod demand_probe;
mod drain;
mod durability;
mod eviction;
mod gone;
mod group;
mod lifetime;
mod look_ahead;
mod many;
mod memory;
mod named_requirement;
mod news;
mod parts;
mod readers;
mod reasons;
mod retention;
mod retention_by_name;
mod spill;
mod stuck;
mod survey;
mod together;
mod turns;
mod weight;
mod world;

use world::World;
