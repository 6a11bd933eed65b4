"""A service in one loop: tasks that offer, follow and demand, and one that gives up."""

from __future__ import annotations

import argparse
import asyncio

import numpy as np

import junctura


async def produce(pool: junctura.aio.Pool, fields: int) -> None:
    """Offers one field after the other, as they are computed."""
    for step in range(fields):
        await pool.offer(np.full((100, 100), float(step)), name=f"t/{step}", unit="K")


async def view(pool: junctura.aio.Pool, fields: int) -> list[float]:
    """The mean of each field, in the order in which they come."""
    means = []
    async with pool.follow('name~"^t/"') as follow:
        async for field in follow:
            with field:
                means.append(float(field.array().mean()))
            if len(means) == fields:
                break
    return means


async def size_of(pool: junctura.aio.Pool, step: int) -> int:
    with await pool.demand(name=f"t/{step}") as field:
        return field.nbytes


async def main(fields: int) -> None:
    async with junctura.aio.Pool(schema="free", name="service") as pool:
        viewer = asyncio.create_task(view(pool, fields))
        waiting = [asyncio.create_task(size_of(pool, step)) for step in range(fields)]
        impatient = asyncio.create_task(pool.demand(name="what nobody makes"))
        await produce(pool, fields)
        means = await viewer
        sizes = await asyncio.gather(*waiting)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        left = (await pool.stat())["interests"]["standing"]
    if means != [float(step) for step in range(fields)] or left:
        raise RuntimeError(f"{means}, {left} left")
    print(f"{fields} fields of {sum(sizes)} bytes seen in one loop; {left} waits are left")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fields", type=int, default=20)
    asyncio.run(main(parser.parse_args().fields))
