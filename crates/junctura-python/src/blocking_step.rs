//! What of a follow's next item takes long: done beside an event loop, and given back.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::OrRaise;
use crate::follow::PyFollow;

/// Reads from a disk, or verifies a large checksum. It stays its follow's, whoever waited for it: one who is cancelled loses
/// nothing.
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
    /// What is to be done for the next item, if it takes long; the same one until it was finished.
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

    /// Takes it back, once it was run; what came of it is taken next.
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
