"""The reader for ParaView, as a source of a pipeline of VTK: ParaView itself is in no registry."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkFiltersGeometry import vtkCompositeDataGeometryFilter

import junctura
from junctura.mesh import MeshBlock, MeshField, MeshPoints, MeshStep, PoolMeshWriter

PLUGIN = Path(__file__).parents[2] / "examples/17_paraview/junctura_reader.py"


def reader_class() -> Any:
    spec = importlib.util.spec_from_file_location("junctura_reader", PLUGIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.JuncturaReader


def test_a_pipeline_shows_steps_as_they_become_visible(tmp_path: Path) -> None:
    points = {"nodes": MeshPoints((np.array([0.0, 1, 1, 0]), np.array([0.0, 0, 1, 1])))}
    blocks = {"plate": MeshBlock("nodes", "quad", np.arange(4))}
    with junctura.Pool(f"unix:{tmp_path}/pool.sock", start=True, schema="mesh") as pool:
        writer = PoolMeshWriter(pool, "plate")

        def offer(step: int) -> None:
            heat = MeshField("heat", "vertex", "nodes", {"": np.full(4, float(step))})
            writer.write(MeshStep(points, blocks, {}, (heat,), step, step / 2))

        offer(1)
        offer(2)
        place = tmp_path / "plate.junctura"
        place.write_text(f"{pool.url}\ncase=plate\n")
        reader = reader_class()()
        reader.SetFileName(str(place))
        surface = vtkCompositeDataGeometryFilter()
        surface.SetInputConnection(reader.GetOutputPort())
        reader.UpdateInformation()
        assert reader.GetTimestepValues() == [0.5, 1.0]
        information = reader.GetOutputInformation(0)
        key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        assert [information.Get(key, index) for index in range(2)] == [0.5, 1.0]
        for time, expected in ((0.5, 1.0), (1.0, 2.0), (0.7, 1.0), (9.0, 2.0)):
            surface.UpdateTimeStep(time)
            values = vtk_to_numpy(surface.GetOutput().GetPointData().GetArray("heat"))
            assert np.array_equal(values, np.full(4, expected))
        offer(3)
        reader.Reload()
        surface.UpdateTimeStep(1.5)
        assert vtk_to_numpy(surface.GetOutput().GetPointData().GetArray("heat"))[0] == 3.0
        assert surface.GetOutput().GetNumberOfCells() == 1
        pool.stop()
