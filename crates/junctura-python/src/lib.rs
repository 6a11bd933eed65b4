//! The native half of the Python package `junctura`: all code that depends on Python.
//!
//! The methods are those of the Rust facade, and each is a thin wrapper: convert the Python arguments, release the
//! interpreter lock, call the facade, convert the result. Three parts are specific to this crate: attributes are read
//! from dictionaries and keyword arguments without conversion to Rust strings (`conversion::given`), payloads are lent
//! to Python and counted while views exist (`conversion::buffer`), and a wait checks for Python's signals
//! (`runtime::interrupt`).
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

mod array;
mod command;
mod conversion;
mod handles;
mod kernels;
mod model;
mod pool;
mod runtime;
mod store;

use pyo3::prelude::*;

/// The native half of junctura.
#[pymodule(gil_used = true)]
mod _native {
    #[pymodule_export]
    use crate::array::{PyLayout, PyPlan};
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::conversion::options::PyReleased;
    #[pymodule_export]
    use crate::handles::allocation::PyAllocation;
    #[pymodule_export]
    use crate::handles::bundle::{PyBundle, PyCompleted, PyStaged};
    #[pymodule_export]
    use crate::handles::events::{PyEvent, PyPeer, PySubscription};
    #[pymodule_export]
    use crate::handles::follow::{PyFollow, PyGap, PyLive};
    #[pymodule_export]
    use crate::handles::object::{LoopedObjects, PyReceived};
    #[pymodule_export]
    use crate::handles::pipeline::PyPipeline;
    #[pymodule_export]
    use crate::handles::require::PyRequirement;
    #[pymodule_export]
    use crate::kernels::grib::{packed, sections, simple_points, unpack, with_values};
    #[pymodule_export]
    use crate::kernels::raster::{darken, draw_lines, put_colours, put_ink, sample};
    #[pymodule_export]
    use crate::kernels::remap::{GridWeights, StepCourse};
    #[pymodule_export]
    use crate::kernels::statistics::{of_ensemble, weighted_sums};
    #[pymodule_export]
    use crate::model::described::{PyDescribed, PyEntry};
    #[pymodule_export]
    use crate::model::pickling::{_described, _entry, _event, _gap, _peer};
    #[pymodule_export]
    use crate::model::schema::PySchema;
    #[pymodule_export]
    use crate::model::selector::PySelector;
    #[pymodule_export]
    use crate::model::version::PyVersion;
    #[pymodule_export]
    use crate::pool::PyPool;
    #[pymodule_export]
    use crate::pool::aio::{PyAnswer, PyTaskPlaces};
    #[pymodule_export]
    use crate::pool::board::PyBoard;
    #[pymodule_export]
    use crate::pool::bundles::PyBundleEntry;
    #[pymodule_export]
    use crate::pool::tally::{PyTally, PyTallyGroup};
    #[pymodule_export]
    use crate::pool::wait::{PendingDemand, PyTimer};
    #[pymodule_export]
    use crate::runtime::error::codes;
    #[pymodule_export]
    use crate::store::{
        PyArchiver, PyArchiverCounts, PyChecked, PyCheckpointed, PyCompacted, PyFlushed, PyFollowing, PyListing,
        PyLocation, PyMoved, PyObjects, PyPayload, PyPayloads, PyRemoved, PySnapshot, PyStore, PyStored,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::runtime::interpreter::refuse_others()?;
        crate::runtime::interpreter::make_ready(module.py())?;
        crate::runtime::ending::watch(module.py())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
