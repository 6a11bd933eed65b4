//! The core's promises, one small case each. Clients are numbers, time is what a test says it is, and what the core sends
//! is kept as text.

mod ahead;
mod archive;
mod awaited;
mod backlog;
mod broken;
mod bundle;
mod components;
mod drain;
mod gone;
mod group;
mod many;
mod memory;
mod named;
mod parts;
mod readers;
mod retention;
mod room;
mod spill;
mod together;
mod wanted;
mod weight;
mod world;

use world::World;
