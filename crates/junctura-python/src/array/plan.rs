//! Who gives what to whom.

use junctura::PlanSide;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::layout::{PyLayout, known, read};
use crate::error::{OrRaise, invalid};

/// A box as Python has it: the peer, the first indices, and those behind the last.
type Shared<'py> = (u64, Bound<'py, PyTuple>, Bound<'py, PyTuple>);
/// No more boxes are listed.
const BOXES_MAX: u64 = 10_000_000;

/// What one rank shares with those of another layout; made by `Layout.plan`. Printed, it lists its runs.
#[pyclass(module = "junctura", name = "Plan", frozen)]
pub(crate) struct PyPlan(junctura::Plan);

#[pymethods]
impl PyLayout {
    /// plan(to, rank, *, side="to", origin=None)
    /// --
    ///
    /// What a rank of `to` takes from the ranks of this layout, or, with `side="from"`, what a rank of this one gives to those of `to`.
    /// Where `to` is a part of the array, `origin` says at which index it begins.
    ///
    /// Examples
    /// --------
    /// >>> plan = junctura.Layout("shape=10x10 grid=2x1").plan("shape=10x10 grid=1x2", 1)
    /// >>> plan.elements, plan.partners
    /// (50, [(0, 25), (1, 25)])
    #[pyo3(signature = (to, rank, *, side="to", origin=None))]
    fn plan(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        rank: i64,
        side: &str,
        origin: Option<Vec<u64>>,
    ) -> PyResult<PyPlan> {
        let side = match side {
            "to" => PlanSide::To,
            "from" => PlanSide::From,
            other => return Err(invalid(py, "side", format!("\"from\" or \"to\", not {other:?}"))),
        };
        let to = read(to)?;
        let rank = known(py, if side == PlanSide::To { &to } else { &self.0 }, rank)?;
        let origin = origin.unwrap_or_else(|| vec![0; to.shape().len()]);
        let plan = py.detach(|| junctura::Plan::new(&self.0, &to, &origin, side, rank));
        plan.map(PyPlan).or_raise(py)
    }
}

#[pymethods]
impl PyPlan {
    /// Whose it is.
    #[getter]
    fn rank(&self) -> u64 {
        self.0.rank()
    }

    /// Whether that rank gives ("from") or takes ("to").
    #[getter]
    fn side(&self) -> &'static str {
        match self.0.side() {
            PlanSide::From => "from",
            PlanSide::To => "to",
        }
    }

    /// How many elements are shared, with all ranks together.
    #[getter]
    fn elements(&self) -> u64 {
        self.0.elements()
    }

    /// The ranks that something is shared with, and how many elements with each.
    #[getter]
    fn partners(&self) -> Vec<(u64, u64)> {
        let partners = self.0.partners();
        partners
            .iter()
            .map(|partner| (partner.rank, partner.elements))
            .collect()
    }

    /// How many boxes are shared.
    #[getter]
    fn count(&self) -> u64 {
        self.0.boxes()
    }

    /// How many runs it lists, over all dimensions: what it costs.
    #[getter]
    fn listed(&self) -> usize {
        self.0.listed()
    }

    /// boxes()
    /// --
    ///
    /// Each box that is shared, which may be very many: the peer's rank, the indices where it begins, and those behind its end.
    fn boxes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Shared<'py>>> {
        if self.0.boxes() > BOXES_MAX {
            let cause = format!("{} are more than {BOXES_MAX}", self.0.boxes());
            return Err(invalid(py, "boxes", cause));
        }
        let mut boxes = Vec::new();
        self.0.for_each_box(|peer, slab| boxes.push((peer, slab.clone())));
        let shown = boxes.into_iter().map(|(peer, slab)| {
            let (start, stop) = (PyTuple::new(py, slab.start)?, PyTuple::new(py, slab.stop)?);
            Ok((peer, start, stop))
        });
        shown.collect()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Plan of rank {}, {} boxes>", self.0.rank(), self.0.boxes())
    }
}
