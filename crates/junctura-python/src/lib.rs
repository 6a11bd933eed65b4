//! The native half of the Python package `junctura`: everything that knows of Python, and nothing else does.
//!
//! The verbs are those of the Rust facade, and each method here is a short way there: read what Python gave, let go of the
//! interpreter, call the facade, show what came. Three things are this crate's own: attributes are read from dictionaries
//! and keyword arguments without becoming Rust strings (`given`), payloads are lent to Python and counted while anybody
//! looks at them (`buffer`), and a wait asks Python for its signals (`interrupt`).
//!
//! What it promises: every wait lets other Python threads run and ends with Ctrl-C; memory that a view shows outlives the
//! view; every failure is one of the exceptions in `junctura.errors`. What it refuses: sub-interpreters.

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
mod buffer;
mod bundle;
mod bundles;
mod command;
mod data;
mod described;
mod dtype;
mod ending;
mod errand;
mod error;
mod events;
mod exchange;
mod follow;
mod given;
mod grib;
mod interpreter;
mod interrupt;
mod kept;
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
    use crate::aio::{Answer, Places};
    #[pymodule_export]
    use crate::allocation::Allocation;
    #[pymodule_export]
    use crate::array::{Layout, Plan};
    #[pymodule_export]
    use crate::bundle::{Bundle, Completed, Staged};
    #[pymodule_export]
    use crate::bundles::BundleEntry;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::described::{Described, Entry};
    #[pymodule_export]
    use crate::error::codes;
    #[pymodule_export]
    use crate::events::{Event, Peer, Subscription};
    #[pymodule_export]
    use crate::follow::{Follow, Gap, Live};
    #[pymodule_export]
    use crate::grib::{packed, sections, simple_points, unpack, with_values};
    #[pymodule_export]
    use crate::object::Object;
    #[pymodule_export]
    use crate::options::Released;
    #[pymodule_export]
    use crate::pickling::{_described, _entry, _event, _gap, _peer};
    #[pymodule_export]
    use crate::pipeline::Pipeline;
    #[pymodule_export]
    use crate::pool::Pool;
    #[pymodule_export]
    use crate::raster::{darken, draw_lines, put_colours, put_ink, sample};
    #[pymodule_export]
    use crate::remap::{GridWeights, StepCourse};
    #[pymodule_export]
    use crate::require::Requirement;
    #[pymodule_export]
    use crate::schema::Schema;
    #[pymodule_export]
    use crate::selector::Selector;
    #[pymodule_export]
    use crate::statistics::{of_ensemble, weighted_sums};
    #[pymodule_export]
    use crate::store::{
        Archiver, ArchiverCounts, Checked, Checkpointed, Compacted, Flushed, Following, Listing, Location, Moved,
        Objects, Payload, Payloads, Removed, Snapshot, Store, Stored,
    };
    #[pymodule_export]
    use crate::version::Version;
    #[pymodule_export]
    use crate::wait::{PendingDemand, Timer};

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
