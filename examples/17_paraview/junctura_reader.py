"""A reader for ParaView: the steps of a mesh in a Junctura pool, while the simulation runs.

Load it with *Tools > Manage Plugins > Load New*, then open a file ``NAME.junctura`` of two lines: the URL of a pool,
and a selector. *Reload* (F5) shows steps that have become visible since.

ParaView needs the package in its own Python: start it with ``--venv FOLDER``, where FOLDER is a virtual environment
with ``junctura``. The same class is a source for any pipeline of VTK; the test of this example uses it so.
"""

# mypy: disable-error-code="misc,untyped-decorator"
from __future__ import annotations

from pathlib import Path
from typing import Any

from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase
from vtkmodules.vtkCommonDataModel import vtkDataObject, vtkMultiBlockDataSet
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

import junctura
from junctura.mesh import MeshStep, MeshViews, follow

try:
    from paraview.util.vtkAlgorithm import smdomain, smhint, smproperty, smproxy
except ImportError:
    smproxy = None


class JuncturaReader(VTKPythonAlgorithmBase):
    """The blocks of a mesh, at the times of its steps."""

    def __init__(self) -> None:
        ports = {"nInputPorts": 0, "nOutputPorts": 1}
        super().__init__(**ports, outputType="vtkMultiBlockDataSet")  # type: ignore[no-untyped-call]
        self._file = ""
        self._steps: dict[float, int] = {}
        self._pool: junctura.Pool | None = None
        self._selector = ""
        self._views = MeshViews()

    def SetFileName(self, name: str | None) -> None:  # noqa: N802 - ParaView's
        """Sets the file with the URL of the pool and the selector."""
        if name != self._file:
            self._file = name or ""
            self._pool = None
            self.Modified()

    def Reload(self) -> None:  # noqa: N802 - ParaView's
        """Looks for new steps."""
        self.Modified()

    def GetTimestepValues(self) -> list[float] | None:  # noqa: N802 - ParaView's
        """Returns the times of all steps."""
        return sorted(self._steps) or None

    def RequestInformation(self, _request: Any, _inputs: Any, outputs: Any) -> int:  # noqa: N802 - VTK's
        """Reports the times of the steps that the pool has now. No payload is read."""
        self._steps = {}
        for entry in self._opened().list(f"{self._selector}, part=fields"):
            step = int(entry["step"])
            self._steps[float(entry.get("time") or step)] = step
        information = outputs.GetInformationObject(0)
        key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        information.Remove(key)
        times = sorted(self._steps)
        for time in times:
            information.Append(key, time)
        if times:
            span = vtkStreamingDemandDrivenPipeline.TIME_RANGE()
            information.Remove(span)
            information.Append(span, times[0])
            information.Append(span, times[-1])
        return 1

    def RequestData(self, _request: Any, _inputs: Any, outputs: Any) -> int:  # noqa: N802 - VTK's
        """Produces the step at the time that is asked for, or the last one before it."""
        if not self._steps:
            return 1
        information = outputs.GetInformationObject(0)
        asked = vtkStreamingDemandDrivenPipeline.UPDATE_TIME_STEP()
        time = information.Get(asked) if information.Has(asked) else max(self._steps)
        chosen = max((known for known in self._steps if known <= time), default=min(self._steps))
        output = vtkMultiBlockDataSet.GetData(outputs, 0)
        output.ShallowCopy(self._views.collection(self._mesh(self._steps[chosen])))
        output.GetInformation().Set(vtkDataObject.DATA_TIME_STEP(), chosen)
        return 1

    def _mesh(self, step: int) -> MeshStep:
        with follow(self._opened(), f"{self._selector}, step={step}", until_live=True) as steps:
            return next(steps)

    def _opened(self) -> junctura.Pool:
        if self._pool is None:
            url, self._selector = Path(self._file).read_text("utf-8").split("\n")[:2]
            self._pool = junctura.Pool(url.strip(), name="paraview")
        return self._pool


if smproxy is not None:
    # The same class, with what ParaView shows of it.
    class _Shown(JuncturaReader):
        @smproperty.stringvector(name="FileName")
        @smdomain.filelist()
        @smhint.filechooser(extensions="junctura", file_description="Mesh in a Junctura pool")
        def SetFileName(self, name: str | None) -> None:  # noqa: N802
            super().SetFileName(name)

        @smproperty.doublevector(name="TimestepValues", information_only="1", si_class="vtkSITimeStepsProperty")
        def GetTimestepValues(self) -> list[float] | None:  # noqa: N802
            return super().GetTimestepValues()

        @smproperty.xml(
            '<Property name="Reload" command="Reload" panel_widget="command_button"><Hints><ReloadFiles/></Hints>'
            "</Property>"
        )
        def Reload(self) -> None:  # noqa: N802
            super().Reload()

    smproxy.reader(
        name="JuncturaReader", label="Junctura mesh", extensions="junctura", file_description="Mesh in a Junctura pool"
    )(_Shown)
