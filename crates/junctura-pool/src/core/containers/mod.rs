//! Containers that are independent of a pool.

pub(in crate::core) mod byte_arena;
pub(in crate::core) mod linked_queue;
pub(in crate::core) mod ordered_ids;
