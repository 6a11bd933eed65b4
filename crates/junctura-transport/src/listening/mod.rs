//! Addresses of servers: names, their sockets in a directory, and one server for each.

pub(crate) mod address;
pub(crate) mod directory;
pub(crate) mod listener;
pub(crate) mod lock;
pub(crate) mod served;
