//! Redistribution plans: the elements exchanged between ranks.

use junctura::PlanSide;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::layout::{PyLayout, known, read};
use crate::runtime::error::{OrRaise, invalid};

/// A box for Python: the peer, the first indices, and those after the last.
type Shared<'py> = (u64, Bound<'py, PyTuple>, Bound<'py, PyTuple>);
/// Limit of listed boxes.
const BOXES_MAX: u64 = 10_000_000;

/// The elements that one rank exchanges with those of another layout; created by `Layout.plan`. Its text lists its
/// runs.
///
/// Examples
/// --------
/// >>> rows = junctura.Layout(shape=(4, 4), grid=(2, 1))
/// >>> columns = junctura.Layout(shape=(4, 4), grid=(1, 2))
/// >>> plan = rows.plan(columns, 1)
/// >>> plan.side, plan.elements, plan.partners
/// ('to', 8, [(0, 4), (1, 4)])
#[pyclass(module = "junctura", name = "Plan", frozen)]
pub(crate) struct PyPlan(junctura::Plan);

#[pymethods]
impl PyLayout {
    /// plan(to, rank, *, side="to", origin=None)
    /// --
    ///
    /// Returns what a rank of `to` receives from the ranks of this layout, or, with `side="from"`, what a rank of this
    /// layout sends to those of `to`. If `to` covers a part of the array, `origin` is the index of its start.
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
    /// The rank of the plan.
    #[getter]
    fn rank(&self) -> u64 {
        self.0.rank()
    }

    /// Whether that rank sends ("from") or receives ("to").
    #[getter]
    fn side(&self) -> &'static str {
        match self.0.side() {
            PlanSide::From => "from",
            PlanSide::To => "to",
        }
    }

    /// Number of exchanged elements, with all ranks together.
    #[getter]
    fn elements(&self) -> u64 {
        self.0.elements()
    }

    /// The ranks of the exchange, and the number of elements with each.
    #[getter]
    fn partners(&self) -> Vec<(u64, u64)> {
        let partners = self.0.partners();
        partners
            .iter()
            .map(|partner| (partner.rank, partner.elements))
            .collect()
    }

    /// Number of exchanged boxes.
    #[getter]
    fn count(&self) -> u64 {
        self.0.boxes()
    }

    /// Number of listed runs, over all dimensions: the cost of the plan.
    #[getter]
    fn listed(&self) -> usize {
        self.0.listed()
    }

    /// boxes()
    /// --
    ///
    /// Returns the exchanged boxes, which may be very many: the peer's rank, the first indices, and those after the
    /// last.
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
