//! The operations on a pool: each verb in its own file, in a blocking and a non-blocking form.
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
