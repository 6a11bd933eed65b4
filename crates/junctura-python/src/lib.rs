//! The native half of the Python package `junctura`: all code that depends on Python.
//!
//! The methods are those of the Rust facade, and each is a thin wrapper: convert the Python arguments, release the
//! interpreter lock, call the facade, convert the result. Three parts are specific to this crate: attributes are read
//! from dictionaries and keyword arguments without conversion to Rust strings (`given`), payloads are lent to Python
//! and counted while views exist (`buffer`), and a wait checks for Python's signals (`interrupt`).
//!
//! Guarantees: every wait lets other Python threads run and ends with Ctrl-C; memory of a view outlives the view; every
//! failure is one of the exceptions in `junctura.errors`. Sub-interpreters are not supported.

#![allow(
    clippy::doc_link_with_quotes,
    clippy::doc_markdown,
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    clippy::unused_self,
    reason = "documentation and signatures of methods are Python's"
)]

mod aio;
mod allocation;
mod array;
mod blocking_step;
mod buffer;
mod bundle;
mod bundles;
mod command;
mod data;
mod described;
mod dtype;
mod ending;
mod error;
mod events;
mod exchange;
mod follow;
mod given;
mod grib;
mod interpreter;
mod interrupt;
mod lazy_value;
mod object;
mod offer_many;
mod options;
mod pickling;
mod pipeline;
mod pool;
mod raster;
mod reading;
mod remap;
mod require;
mod schema;
mod selector;
mod statistics;
mod store;
mod target;
mod values;
mod version;
mod wait;
mod wanted;

use pyo3::prelude::*;

/// The native half of junctura.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::aio::{PyAnswer, PyTaskPlaces};
    #[pymodule_export]
    use crate::allocation::PyAllocation;
    #[pymodule_export]
    use crate::array::{PyLayout, PyPlan};
    #[pymodule_export]
    use crate::bundle::{PyBundle, PyCompleted, PyStaged};
    #[pymodule_export]
    use crate::bundles::PyBundleEntry;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::described::{PyDescribed, PyEntry};
    #[pymodule_export]
    use crate::error::codes;
    #[pymodule_export]
    use crate::events::{PyEvent, PyPeer, PySubscription};
    #[pymodule_export]
    use crate::follow::{PyFollow, PyGap, PyLive};
    #[pymodule_export]
    use crate::grib::{packed, sections, simple_points, unpack, with_values};
    #[pymodule_export]
    use crate::object::PyReceived;
    #[pymodule_export]
    use crate::options::PyReleased;
    #[pymodule_export]
    use crate::pickling::{_described, _entry, _event, _gap, _peer};
    #[pymodule_export]
    use crate::pipeline::PyPipeline;
    #[pymodule_export]
    use crate::pool::PyPool;
    #[pymodule_export]
    use crate::raster::{darken, draw_lines, put_colours, put_ink, sample};
    #[pymodule_export]
    use crate::remap::{GridWeights, StepCourse};
    #[pymodule_export]
    use crate::require::PyRequirement;
    #[pymodule_export]
    use crate::schema::PySchema;
    #[pymodule_export]
    use crate::selector::PySelector;
    #[pymodule_export]
    use crate::statistics::{of_ensemble, weighted_sums};
    #[pymodule_export]
    use crate::store::{
        PyArchiver, PyArchiverCounts, PyChecked, PyCheckpointed, PyCompacted, PyFlushed, PyFollowing, PyListing,
        PyLocation, PyMoved, PyObjects, PyPayload, PyPayloads, PyRemoved, PySnapshot, PyStore, PyStored,
    };
    #[pymodule_export]
    use crate::version::PyVersion;
    #[pymodule_export]
    use crate::wait::{PendingDemand, PyTimer};

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::interpreter::refuse_others()?;
        crate::interpreter::make_ready(module.py())?;
        crate::ending::watch(module.py())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
