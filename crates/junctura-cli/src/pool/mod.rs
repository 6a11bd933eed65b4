//! The commands about a pool: objects into it and out of it, requirements, groups, its server.

pub(crate) mod bundle;
pub(crate) mod cp;
pub(crate) mod get;
pub(crate) mod group;
pub(crate) mod ls;
pub(crate) mod put;
pub(crate) mod require;
pub(crate) mod serve;
pub(crate) mod stat;
pub(crate) mod stop;
pub(crate) mod wait_for;
pub(crate) mod wanted;
pub(crate) mod watch;
pub(crate) mod withdraw;
