"""Files as VTK's readers see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkFiltersVerdict import vtkCellSizeFilter
from vtkmodules.vtkIOCGNSReader import vtkCGNSReader
from vtkmodules.vtkIOExodus import vtkExodusIIReader
from vtkmodules.vtkIOIOSS import vtkIOSSReader


def blocks_of(composite: Any) -> dict[str, Any]:
    """Returns the data sets of a composite one, by name."""
    found = {}
    iterator = composite.NewIterator()
    while not iterator.IsDoneWithTraversal():
        name = iterator.GetCurrentMetaData().Get(vtkCompositeDataSet.NAME())
        # IOSS names collections of partitions instead.
        found[name or str(iterator.GetCurrentFlatIndex())] = iterator.GetCurrentDataObject()
        iterator.GoToNextItem()
    return found


def exodus(path: Path, step: int) -> tuple[dict[str, Any], list[float]]:
    """Returns the blocks of a step, counted from 0, and all times."""
    reader = vtkExodusIIReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    reader.SetApplyDisplacements(False)
    reader.SetSqueezePoints(False)
    for kind in (vtkExodusIIReader.NODAL, vtkExodusIIReader.ELEM_BLOCK):
        for index in range(reader.GetNumberOfObjectArrays(kind)):
            reader.SetObjectArrayStatus(kind, index, 1)
    return _at(reader, step)


def cgns(path: Path, step: int) -> tuple[dict[str, Any], list[float]]:
    """Returns the zones of a step, counted from 0, and all times."""
    reader = vtkCGNSReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    reader.EnableAllBases()
    reader.EnableAllPointArrays()
    reader.EnableAllCellArrays()
    return _at(reader, step)


def ioss(path: Path, step: int) -> tuple[dict[str, Any], list[float]]:
    """Returns what IOSS and the CGNS library make of a file in a step, counted from 0, and all times."""
    reader = vtkIOSSReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    for kind in range(10):
        reader.GetEntitySelection(kind).EnableAllArrays()
        reader.GetFieldSelection(kind).EnableAllArrays()
    return _at(reader, step)


def _at(reader: Any, step: int) -> tuple[dict[str, Any], list[float]]:
    information = reader.GetOutputInformation(0)
    key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    times = [information.Get(key, index) for index in range(information.Length(key))] if information.Has(key) else []
    if times:
        reader.UpdateTimeStep(times[step])
    else:
        reader.Update()
    return blocks_of(reader.GetOutputDataObject(0)), times


def coordinates(grid: Any) -> Any:
    """Returns the points, one a row."""
    return vtk_to_numpy(grid.GetPoints().GetData())


def cells(grid: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Returns type and points of each cell."""
    found = []
    for index in range(grid.GetNumberOfCells()):
        cell = grid.GetCell(index)
        points = cell.GetPointIds()
        found.append((cell.GetCellType(), tuple(points.GetId(at) for at in range(points.GetNumberOfIds()))))
    return found


def values(data: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of points or cells by name, with components in columns."""
    arrays = [data.GetArray(index) for index in range(data.GetNumberOfArrays())]
    return {array.GetName(): vtk_to_numpy(array) for array in arrays}


def volume(grid: Any) -> float:
    """Returns the sum of all cells."""
    sizes = vtkCellSizeFilter()
    sizes.SetInputData(grid)
    sizes.Update()
    return float(vtk_to_numpy(sizes.GetOutput().GetCellData().GetArray("Volume")).sum())
