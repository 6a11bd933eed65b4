"""Programs of ADIOS2 that use it in a way that an engine may refuse: ``wrong_use.py CONFIG NAME``."""

import sys

import adios2
import adios2.bindings as bindings
import numpy as np

io = adios2.Adios(sys.argv[1]).declare_io("heat")
name = sys.argv[2]
data = np.arange(6.0)
if name == "append":
    io.open("heat", bindings.Mode.Append)
elif name == "read-local":
    engine = io.open("heat", bindings.Mode.Read)
    engine.begin_step()
    value = np.zeros(4)
    engine.get(io.inquire_variable("local"), value)
    print(value.tolist())
    engine.close()
else:
    engine = io.open("heat", bindings.Mode.Write)
    if name == "end":
        engine.end_step()
    if name != "stepless":
        engine.begin_step()
    if name == "twice":
        engine.begin_step()
    if name == "hole":
        variable = io.define_variable("a", data, [3, 3], [0, 0], [2, 3])
    elif name == "local":
        variable = io.define_variable("a", data, [], [], [6])
    else:
        variable = io.define_variable("a", data, [2, 3], [0, 0], [2, 3])
        local = io.define_variable("local", data, [], [], [4])
        engine.put(local, np.arange(4.0), bindings.Mode.Sync)
    engine.put(variable, data, bindings.Mode.Sync)
    if name == "local":
        engine.put(variable, data, bindings.Mode.Sync)
    if name != "stepless":
        engine.end_step()
    engine.close()
