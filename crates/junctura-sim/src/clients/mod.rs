//! Simulated clients: their requests, replies and checks.

pub(crate) mod actions;
pub(crate) mod bundles;
pub(crate) mod checks;
pub mod client;
pub mod group_checks;
pub(crate) mod linked;
pub mod network;
pub mod reader;
pub mod replies;
pub mod requests;
