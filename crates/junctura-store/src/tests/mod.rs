//! Tests of a whole store in which storage fails, processes end at any step, or limits are reached.

pub(crate) mod crash;
mod cut;
mod growth;
mod limit;
mod owner;
mod step;
mod version;
