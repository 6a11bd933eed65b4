"""A program that reads steps with ADIOS2, by an engine that its configuration names, and prints all of them as JSON.

``heat_reader.py CONFIG STREAM [timeout=S]``
"""

import json
import sys

import adios2
import adios2.bindings as bindings
import numpy as np

config, stream = sys.argv[1], sys.argv[2]
options = dict(word.partition("=")[::2] for word in sys.argv[3:])
io = adios2.Adios(config).declare_io("heat")
engine = io.open(stream, bindings.Mode.Read)


def dtype_of(type_name: str) -> str:
    """The type of NumPy."""
    others = {"float": "f4", "double": "f8", "float complex": "c8", "double complex": "c16", "char": "i1"}
    return others.get(type_name, type_name.removesuffix("_t"))


def plain(value: object) -> object:
    """A value as JSON, with the bits of its numbers."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), np.ascontiguousarray(value).tobytes().hex()]
    return value if isinstance(value, (str, int)) else repr(value)


while True:
    status = engine.begin_step(bindings.StepMode.Read, float(options.get("timeout", -1)))
    if status != bindings.StepStatus.OK:
        print(json.dumps({"status": str(status)}), flush=True)
        break
    found = {}
    for name in sorted(io.available_variables()):
        variable = io.inquire_variable(name)
        if 0 in variable.shape():
            found[name] = [variable.type(), variable.shape()]
            continue
        if variable.type() == "string":
            found[name] = engine.get(variable)
            continue
        value = np.zeros(variable.count() or [1], dtype_of(variable.type()))
        engine.get(variable, value)
        found[name] = [variable.shape(), plain(value)]
    # A part of an array.
    variable = io.inquire_variable("T")
    variable.set_selection([[3, 2], [4, 5]])
    part = np.zeros((4, 5))
    engine.get(variable, part, bindings.Mode.Deferred)
    engine.perform_gets()
    found["part of T"] = plain(part)
    attributes = {
        name: [entry["Type"], entry["Elements"], entry["Value"]] for name, entry in io.available_attributes().items()
    }
    print(json.dumps({"step": engine.current_step(), "variables": found, "attributes": attributes}), flush=True)
    engine.end_step()
engine.close()
