"""A tensor of PyTorch in the memory of a pool."""

from __future__ import annotations

import sys

import numpy as np

import junctura

try:
    import torch
except ImportError:
    print("there is no PyTorch here: pip install 'junctura[torch]'")
    sys.exit(0)


def main() -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(np.arange(1 << 20, dtype="f4").reshape(1024, 1024), name="t", unit="K")
        field = pool.demand(name="t")
        tensor = torch.from_dlpack(field)
        if tensor.data_ptr() != field.array().ctypes.data:
            raise RuntimeError("it was copied")
        # For reading: nobody changes what was offered. A batch to work on is a copy.
        batch = tensor.clone()
        batch /= batch.max()
        print(
            f"a tensor of {tuple(tensor.shape)} in the pool's memory, and a batch with mean {batch.mean().item():.3f}"
        )


if __name__ == "__main__":
    main()
