"""A rank of a program that writes steps with ADIOS2: each rank has some rows of an array.

``heat_ranks.py CONFIG STEPS [killed=STEP] [wrong=shape|overlap|local]``: its launcher states rank and ranks. The last
rank is killed in step STEP; ranks disagree. Each says that it is ready, and waits for a line.
"""

import os
import signal
import sys

import adios2
import adios2.bindings as bindings
import numpy as np

rank, ranks = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
options = dict(word.partition("=")[::2] for word in sys.argv[3:])
wrong = options.get("wrong")
io = adios2.Adios(sys.argv[1]).declare_io("heat")
NX, NY = 12, 7
first, last = NX * rank // ranks, NX * (rank + 1) // ranks
if wrong == "overlap":
    first = 0
shape = [NX, NY + (rank if wrong == "shape" else 0)]
if wrong == "local":
    t = io.define_variable("T", np.zeros(1), [], [], [last - first, NY])
else:
    t = io.define_variable("T", np.zeros(1), shape, [first, 0], [last - first, NY])
columns = io.define_variable("columns", np.zeros(1), [NX, NY], [0, 0], [NX, 1])
mean = io.define_variable("mean", np.zeros(1))
of_one = io.define_variable("of 1", np.zeros(1), [2], [0], [2])
print("ready", flush=True)
sys.stdin.readline()
engine = io.open("heat", bindings.Mode.Write)
whole = np.arange(NX * NY, dtype="f8").reshape(NX, NY)
for step in range(int(sys.argv[2])):
    engine.begin_step()
    engine.put(t, np.ascontiguousarray((whole + step)[first:last]), bindings.Mode.Sync)
    # The last rank has none, the first one two blocks.
    if rank < max(1, ranks - 1):
        for begin, end in {0: [(0, 1), (4, NY)], 1: [(1, 4)]}[rank] if ranks == 3 else [(0, NY)]:
            columns.set_selection([[0, begin], [NX, end - begin]])
            engine.put(columns, np.ascontiguousarray(whole[:, begin:end] * 2), bindings.Mode.Sync)
    if rank == 0:
        engine.put(mean, np.array([whole.mean() + step]), bindings.Mode.Sync)
    if rank == ranks - 1:
        engine.put(of_one, np.array([1.0, 2.0]), bindings.Mode.Sync)
        if options.get("killed") == str(step):
            os.kill(os.getpid(), signal.SIGKILL)
    engine.end_step()
engine.close()
