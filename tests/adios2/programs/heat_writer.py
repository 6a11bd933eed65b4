"""A program that writes steps with ADIOS2, by an engine that its configuration names.

``heat_writer.py CONFIG STREAM STEPS [stepwise] [exit-in=N]``: waits for a line before each step; is killed in step N.
"""

import os
import signal
import sys

import adios2
import adios2.bindings as bindings
import numpy as np

config, stream, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = dict(word.partition("=")[::2] for word in sys.argv[4:])
io = adios2.Adios(config).declare_io("heat")
NX, NY = 12, 10
t = io.define_variable("T", np.zeros(1), [NX, NY], [0, 0], [NX, NY])
blocks = io.define_variable("fields/u", np.zeros(1, "f4"), [NX, NY], [0, 0], [NX // 2, NY])
numbers = [
    io.define_variable(f"numbers/{name}", np.zeros(1, name), [5], [0], [5])
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128")
]
growing = io.define_variable("growing", np.zeros(1), [1], [0], [1])
mean = io.define_variable("mean", np.zeros(1))
count = io.define_variable("count", np.zeros(1, "i4"))
phase = io.define_variable("phase", "")
sometimes = io.define_variable("sometimes", np.zeros(1), [3], [0], [3])
empty = io.define_variable("empty", np.zeros(1), [0, 3], [0, 0], [0, 3])
io.define_attribute("title", "heat\tin a \\ plate\n")
io.define_attribute("dx", np.array([0.1]))
io.define_attribute("bounds", np.array([0.0, 1.0 / 3.0, 1e-300]))
io.define_attribute("names", ["x", "y"])
io.define_attribute("cells", np.array([NX * NY], dtype="u8"))
engine = io.open(stream, bindings.Mode.Write)
for step in range(steps):
    if "stepwise" in options and not sys.stdin.readline():
        break
    engine.begin_step()
    field = np.arange(NX * NY, dtype="f8").reshape(NX, NY) / 7 + step
    engine.put(t, field)
    u = (field * 3).astype("f4")
    for begin in (0, NX // 2):
        blocks.set_selection([[begin, 0], [NX // 2, NY]])
        part = np.ascontiguousarray(u[begin : begin + NX // 2])
        engine.put(blocks, part, bindings.Mode.Sync if step % 2 else bindings.Mode.Deferred)
        if step % 2 == 0:
            # Deferred: the memory may be used again behind this.
            engine.perform_puts()
            part[:] = -1
    for variable in numbers:
        dtype = variable.name().removeprefix("numbers/")
        engine.put(
            variable, (np.arange(5) + step).astype(dtype) * (1j if "complex" in dtype else 1), bindings.Mode.Sync
        )
    growing.set_shape([step + 1])
    growing.set_selection([[0], [step + 1]])
    line = np.arange(step + 1.0)
    engine.put(growing, line)
    engine.put(mean, np.array([field.mean()]), bindings.Mode.Sync)
    engine.put(count, np.array([step], dtype="i4"), bindings.Mode.Sync)
    engine.put(phase, f"step {step}\t\u00e9")
    if step % 2:
        engine.put(sometimes, np.full(3, float(step)), bindings.Mode.Sync)
    engine.put(empty, np.zeros((0, 3)), bindings.Mode.Sync)
    if options.get("exit-in") == str(step):
        os.kill(os.getpid(), signal.SIGKILL)
    engine.end_step()
    print(f"step {step}", flush=True)
engine.close()
print("done", flush=True)
