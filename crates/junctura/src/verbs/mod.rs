//! What a program does with a pool: each verb in a file of its own, in its blocking form and in the form that does not wait.
//!
//! ```text
//!  begin_X(args, options) --> Pending       X_with(args, options) = begin_X(…)?.wait()       X(args) = X_with(args, default)
//! ```

pub(crate) mod allocation;
pub(crate) mod bundle;
pub(crate) mod bundles;
pub(crate) mod demand;
pub(crate) mod follow;
pub(crate) mod list;
pub(crate) mod offer;
pub(crate) mod pipeline;
pub(crate) mod require;
pub(crate) mod stop;
pub(crate) mod subscribe;
pub(crate) mod sync;
pub(crate) mod wanted;
pub(crate) mod withdraw;
