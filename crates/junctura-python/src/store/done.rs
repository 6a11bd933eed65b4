//! Results of operations on a store.

use pyo3::prelude::*;

use crate::runtime::error::raise;

/// The result of a flush.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// ...     flushed = store.flush()
/// >>> flushed.commit, flushed.objects
/// (1, 1)
#[pyclass(module = "junctura", name = "Flushed", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyFlushed {
    /// The number of its commit: of two objects with one key, that of the later commit supersedes the other. If there
    /// was nothing to flush, the number of the last commit; 0 before the first.
    commit: u64,
    /// Number of objects.
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

/// The result of a removal.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// >>> removed = store.wipe("name=a")
/// >>> removed.objects, removed.nbytes
/// (1, 7)
#[pyclass(module = "junctura", name = "Removed", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyRemoved {
    /// The number of the commit that removed them; 0 if there was nothing to remove.
    commit: u64,
    /// Number of objects.
    objects: u64,
    /// Total size of their payloads in bytes.
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

/// The result of a move.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// >>> store.add_tier("cold", folder / "cold")
/// >>> moved = store.move_to("name=a", "cold")
/// >>> moved.objects, moved.nbytes, moved.damaged
/// (1, 7, [])
#[pyclass(module = "junctura", name = "Moved", frozen, get_all)]
pub(crate) struct PyMoved {
    /// The number of the last commit of the move; 0 if there was nothing to move.
    commit: u64,
    /// Number of objects.
    objects: u64,
    /// Their size in their files, in bytes.
    nbytes: u64,
    /// Damaged objects, which were not moved: the key and the error of each, at most 1000.
    damaged: Vec<(String, Py<PyAny>)>,
    /// Number of damaged objects.
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

/// Errors of objects, by key.
fn damages(py: Python<'_>, damaged: Vec<(String, junctura::Error)>) -> Vec<(String, Py<PyAny>)> {
    let damage = |(key, error): (String, junctura::Error)| (key, raise(py, &error).into_value(py).into_any());
    damaged.into_iter().map(damage).collect()
}

/// The result of a check.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// >>> checked = store.check()
/// >>> checked.objects, checked.nbytes, checked.damaged
/// (1, 7, [])
#[pyclass(module = "junctura", name = "Checked", frozen, get_all)]
pub(crate) struct PyChecked {
    /// Number of objects that were read.
    objects: u64,
    /// Total size of their payloads in bytes.
    nbytes: u64,
    /// Damaged objects: the key and the error of each, at most 1000.
    damaged: Vec<(String, Py<PyAny>)>,
    /// Number of damaged objects.
    damaged_count: u64,
    /// Data files without a commit: a writer has crashed before its first flush, or has not flushed yet.
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

/// The contents of a checkpoint.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// >>> checkpoint = store.checkpoint()
/// >>> checkpoint.commit, checkpoint.rows
/// (1, 1)
#[pyclass(module = "junctura", name = "Checkpointed", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyCheckpointed {
    /// The last commit that it covers.
    commit: u64,
    /// Number of its files.
    segments: usize,
    /// Number of rows in all files.
    rows: u64,
    /// Number of newly written rows; the others were in existing files.
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

/// The result of a compaction.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// >>> compacted = store.compact()
/// >>> compacted.checkpoint.rows, compacted.removed
/// (1, [])
#[pyclass(module = "junctura", name = "Compacted", frozen, get_all)]
pub(crate) struct PyCompacted {
    /// The new checkpoint.
    checkpoint: PyCheckpointed,
    /// Removed files, by name in the store.
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
