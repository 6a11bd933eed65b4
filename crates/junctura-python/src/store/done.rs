//! What was done.

use pyo3::prelude::*;

use crate::error::raise;

/// What a flush made visible.
#[pyclass(module = "junctura", name = "Flushed", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyFlushed {
    /// The number of its commit: of two objects of one key, that of the later commit masks the other. That of the last commit when
    /// there was nothing to flush; 0 before the first.
    commit: u64,
    /// How many objects.
    objects: u64,
}

impl From<junctura_store::Flushed> for PyFlushed {
    fn from(flushed: junctura_store::Flushed) -> Self {
        Self {
            commit: flushed.commit,
            objects: flushed.objects,
        }
    }
}

#[pymethods]
impl PyFlushed {
    fn __repr__(&self) -> String {
        format!("Flushed(commit={}, objects={})", self.commit, self.objects)
    }
}

/// What was removed.
#[pyclass(module = "junctura", name = "Removed", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyRemoved {
    /// The number of the commit that removed it; 0 when there was nothing to remove.
    commit: u64,
    /// How many objects.
    objects: u64,
    /// Their bytes.
    nbytes: u64,
}

impl From<junctura_store::Removed> for PyRemoved {
    fn from(removed: junctura_store::Removed) -> Self {
        Self {
            commit: removed.commit,
            objects: removed.objects,
            nbytes: removed.bytes,
        }
    }
}

#[pymethods]
impl PyRemoved {
    fn __repr__(&self) -> String {
        format!(
            "Removed(commit={}, objects={}, nbytes={})",
            self.commit, self.objects, self.nbytes
        )
    }
}

/// What was moved.
#[pyclass(module = "junctura", name = "Moved", frozen, get_all)]
pub(crate) struct PyMoved {
    /// The number of the last commit that moved something; 0 when there was nothing to move.
    commit: u64,
    /// How many objects.
    objects: u64,
    /// The bytes that they have in their files.
    nbytes: u64,
    /// Objects that are not what was archived, each by its key with the error that says why: they stay where they are. At most 1000 of them.
    damaged: Vec<(String, Py<PyAny>)>,
    /// How many are damaged.
    damaged_count: u64,
}

impl PyMoved {
    pub(super) fn new(py: Python<'_>, moved: junctura_store::Moved) -> Self {
        Self {
            commit: moved.commit,
            objects: moved.objects,
            nbytes: moved.bytes,
            damaged: damages(py, moved.damaged),
            damaged_count: moved.damaged_count,
        }
    }
}

#[pymethods]
impl PyMoved {
    fn __repr__(&self) -> String {
        format!(
            "<junctura.Moved {} objects, {} bytes, {} damaged>",
            self.objects, self.nbytes, self.damaged_count
        )
    }
}

/// What is wrong with objects, by their keys.
fn damages(py: Python<'_>, damaged: Vec<(String, junctura::Error)>) -> Vec<(String, Py<PyAny>)> {
    let damage = |(key, error): (String, junctura::Error)| (key, raise(py, &error).into_value(py).into_any());
    damaged.into_iter().map(damage).collect()
}

/// What a check found.
#[pyclass(module = "junctura", name = "Checked", frozen, get_all)]
pub(crate) struct PyChecked {
    /// Objects that were read.
    objects: u64,
    /// Their bytes.
    nbytes: u64,
    /// Objects that are not what was archived, each by its key with the error that says why; at most 1000 of them.
    damaged: Vec<(String, Py<PyAny>)>,
    /// How many are damaged.
    damaged_count: u64,
    /// Data files that no commit names: a writer has died before its first flush, or is about to flush.
    unnamed: Vec<String>,
}

impl PyChecked {
    pub(super) fn new(py: Python<'_>, checked: junctura_store::Checked) -> Self {
        Self {
            objects: checked.objects,
            nbytes: checked.bytes,
            damaged: damages(py, checked.damaged),
            damaged_count: checked.damaged_count,
            unnamed: checked.unnamed,
        }
    }
}

#[pymethods]
impl PyChecked {
    fn __repr__(&self) -> String {
        format!(
            "<junctura.Checked {} objects, {} damaged, {} files without a name>",
            self.objects,
            self.damaged_count,
            self.unnamed.len()
        )
    }
}

/// What a checkpoint covers.
#[pyclass(module = "junctura", name = "Checkpointed", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyCheckpointed {
    /// The last commit that it covers.
    commit: u64,
    /// Its files.
    segments: usize,
    /// Rows in all of them.
    rows: u64,
    /// Rows that were written for it; the others were in files already.
    written_rows: u64,
}

impl From<junctura_store::Checkpointed> for PyCheckpointed {
    fn from(done: junctura_store::Checkpointed) -> Self {
        Self {
            commit: done.commit,
            segments: done.segments,
            rows: done.rows,
            written_rows: done.written_rows,
        }
    }
}

#[pymethods]
impl PyCheckpointed {
    fn __repr__(&self) -> String {
        format!(
            "Checkpointed(commit={}, segments={}, rows={}, written_rows={})",
            self.commit, self.segments, self.rows, self.written_rows
        )
    }
}

/// What a compaction did.
#[pyclass(module = "junctura", name = "Compacted", frozen, get_all)]
pub(crate) struct PyCompacted {
    /// The checkpoint that it made.
    checkpoint: PyCheckpointed,
    /// Files that it removed, by their names in the store.
    removed: Vec<String>,
}

impl From<junctura_store::Compacted> for PyCompacted {
    fn from(done: junctura_store::Compacted) -> Self {
        Self {
            checkpoint: done.checkpoint.into(),
            removed: done.removed,
        }
    }
}

#[pymethods]
impl PyCompacted {
    fn __repr__(&self) -> String {
        format!(
            "<junctura.Compacted {}, {} files removed>",
            self.checkpoint.__repr__(),
            self.removed.len()
        )
    }
}
