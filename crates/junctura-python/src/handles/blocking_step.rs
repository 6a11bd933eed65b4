//! Slow steps of a follow's next item: executed beside an event loop, and then returned.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::handles::follow::PyFollow;
use crate::runtime::error::OrRaise;

/// Reads from disk, or verifies a large checksum. The step belongs to its follow: if the waiting task is canceled,
/// nothing is lost.
#[pyclass(module = "junctura._native", name = "_Errand", frozen)]
pub(crate) struct PyBlockingStep(Mutex<Option<junctura::binding::BlockingStep>>);

/// Of a follow, the one that is out.
pub(crate) type Out = Mutex<Option<Py<PyBlockingStep>>>;

#[pymethods]
impl PyBlockingStep {
    /// Does it, or waits until another thread has done it.
    fn run(&self, py: Python<'_>) {
        py.detach(|| {
            let mut errand = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(errand) = &mut *errand {
                errand.run();
            }
        });
    }
}

#[pymethods]
impl PyFollow {
    /// Returns the slow step for the next item, if there is one; the same one until it is finished.
    fn _errand(&self, py: Python<'_>) -> PyResult<Option<Py<PyBlockingStep>>> {
        let mut out = self.errand.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some(errand) = &*out {
            return Ok(Some(errand.clone_ref(py)));
        }
        let taken = self.with(py, |follow| py.detach(|| junctura::binding::take_errand(follow)));
        let Some(errand) = taken.transpose().or_raise(py)?.flatten() else {
            return Ok(None);
        };
        let errand = Py::new(py, PyBlockingStep(Mutex::new(Some(errand))))?;
        *out = Some(errand.clone_ref(py));
        Ok(Some(errand))
    }

    /// Takes the step back after its execution; the next call takes its result.
    fn _finish(&self, py: Python<'_>, errand: &Bound<'_, PyBlockingStep>) -> PyResult<()> {
        let mut out = self.errand.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        // Another task may have finished it.
        if out.take_if(|out| out.is(errand)).is_none() {
            return Ok(());
        }
        let done = errand.get().0.lock_py_attached(py);
        let Some(done) = done.unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let finished = self.with(py, |follow| py.detach(|| junctura::binding::finish(follow, done)));
        finished.transpose().or_raise(py).map(|_| ())
    }
}
