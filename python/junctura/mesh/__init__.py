"""Meshes and fields of simulations: between files, pools, stores and pictures.

```text
  read("a.exo"), read("unix:NAME?case=a")     a series of meshes, step by step
  create("b.cgns"), create("unix:NAME?...")   takes such a series
  compare(first, second, tolerance)           what differs
  follow("unix:NAME", "case=a")               the steps of a simulation while it runs
  to_pyvista(mesh), to_vtk(mesh)              for pictures
```
A `MeshStep` has points, blocks of elements, sets, and the fields of one step, as NumPy arrays. Meshes from a pool are
read-only views of shared memory. Exodus files need netCDF4, CGNS files h5py, and pictures PyVista:
``pip install 'junctura[mesh]'``.

Examples
--------
>>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0), numpy.zeros(3)))}
>>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
>>> heat = junctura.mesh.MeshField("heat", "element", "rod", {"": numpy.array([300.0, 310.0])})
>>> writer = junctura.mesh.create(folder / "rod.cgns")
>>> writer.write(junctura.mesh.MeshStep(points, blocks, fields=(heat,), step=1, time=0.5))
>>> writer.close()
>>> with junctura.mesh.read(folder / "rod.cgns") as series:
...     for mesh in series:
...         print(mesh.time, mesh.fields[0].values[""])
0.5 [300. 310.]

"""

from __future__ import annotations

from junctura.mesh._compare import MeshDifference, ValueTolerance, compare
from junctura.mesh._ends import MeshReader, MeshWriter, create, read
from junctura.mesh._follow import MeshFollow, follow
from junctura.mesh._model import CellFaces, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep
from junctura.mesh._objects import PoolMeshReader, PoolMeshWriter, StoreMeshReader, StoreMeshWriter
from junctura.mesh._vtk import MeshViews, to_pyvista, to_vtk

__all__ = [
    "CellFaces",
    "MeshBlock",
    "MeshDifference",
    "MeshField",
    "MeshFollow",
    "MeshPoints",
    "MeshReader",
    "MeshSet",
    "MeshStep",
    "MeshViews",
    "MeshWriter",
    "PoolMeshReader",
    "PoolMeshWriter",
    "StoreMeshReader",
    "StoreMeshWriter",
    "ValueTolerance",
    "compare",
    "create",
    "follow",
    "read",
    "to_pyvista",
    "to_vtk",
]
