//! The board of a pool's server, and notes of clients on it.

use junctura::PoolBoard;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::pool::PyPool;
use crate::runtime::error::OrRaise;

/// The numbers of a pool's server on a page of shared memory; returned by `Pool.board`. Reading costs the server nothing, and
/// works while the server hangs and after it has ended.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     numbers = pool.board().snapshot()
/// ...     print(numbers["counters"]["offered"], numbers["head"]["state"])
/// 1 serving
#[pyclass(module = "junctura", name = "Board", frozen)]
pub(crate) struct PyBoard(pub(super) PoolBoard);

#[pymethods]
impl PyBoard {
    /// Copies the board: numbers of one moment, while the server is busy at most 20 ms old, or 100 times what writing it takes.
    ///
    /// Returns
    /// -------
    /// dict
    ///     `head`, `counters`, `histograms`, `clients`, `requirements`, `datasets`, `components` and `edges`, as
    ///     docs/formats/board.md describes them, and `is_consistent`: False if the server was stopped or killed while it wrote.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = py.detach(|| self.0.snapshot().to_json());
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Seconds since the deciding thread of the server was last seen to turn: about one at most, or the server hangs or has ended.
    #[getter]
    fn turn_age(&self) -> f64 {
        self.0.turn_age().as_secs_f64()
    }
}

#[pymethods]
impl PyPool {
    /// Maps the board of the server: its numbers on a page of shared memory. One round trip; reading the board needs none.
    ///
    /// Returns
    /// -------
    /// Board
    ///
    /// Raises
    /// ------
    /// Unsupported
    ///     The pool is on another machine.
    fn board(&self, py: Python<'_>) -> PyResult<PyBoard> {
        py.detach(|| self.inner.board()).or_raise(py).map(PyBoard)
    }

    /// States what this client works on, for people looking at the pool: `junctura top`, `stat` and the board show it. The last
    /// note counts; at most one is sent in a second, so a program can state each of its steps. Does not block.
    ///
    /// Parameters
    /// ----------
    /// text : str, optional
    ///     Without a text and without values, the note is removed.
    /// **values
    ///     Are added to the text as `name=value`. The whole has at most 1,024 bytes, and no control character.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The note is too long, or has a control character.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     pool.note(step=36, of=240)
    /// ...     pool.sync()
    /// ...     print(pool.stat()["clients"][0]["note"])
    /// step=36, of=240
    #[pyo3(signature = (text="", /, **values))]
    fn note(&self, py: Python<'_>, text: &str, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut parts: Vec<String> = Vec::new();
        parts.extend((!text.is_empty()).then(|| text.to_owned()));
        for (name, value) in values.into_iter().flatten() {
            parts.push(format!("{name}={}", value.str()?));
        }
        self.inner.note(parts.join(", ")).or_raise(py)
    }
}
