//! Classes of what requests return: objects, memory, bundles, follows, requirements, subscriptions and pipelines.

pub(crate) mod allocation;
pub(crate) mod blocking_step;
pub(crate) mod bundle;
pub(crate) mod events;
pub(crate) mod follow;
pub(crate) mod object;
pub(crate) mod pipeline;
pub(crate) mod require;
