"""The pool for asyncio: the same verbs, awaited.

Whatever may wait is a coroutine here, follows and subscriptions are asynchronous iterators, and nothing blocks the
event loop. No thread stands behind a wait: the loop watches the pool's descriptor, one for all tasks, however many
wait. Tasks of several loops, and threads, may share a pool.

A task that is cancelled leaves nothing behind: its demand is given up, and an object that had come for it but was not
yet in its hands is given back as if it had never been received, so that a group or requirement is owed it again. An
offer that is cancelled is carried out whole or not at all.

Examples
--------
>>> async def main() -> None:
...     async with junctura.aio.Pool(schema="free") as pool:
...         waits = asyncio.create_task(pool.demand(name="b"))
...         async with pool.follow(only_new=True) as follow:
...             await pool.offer(b"1", name="a")
...             await pool.offer(numpy.ones(3), name="b")
...             async for obj in follow:
...                 print(obj["name"], obj.nbytes)
...                 if obj["name"] == "b":
...                     break
...         print((await waits).array().sum())
>>> asyncio.run(main())
a 1
b 24
3.0

"""

from junctura._array.exchange import AsyncExchange as Exchange
from junctura.aio._pool import Pool
from junctura.aio._reading import Follow, Requirement, Subscription
from junctura.aio._writing import Bundle, Pipeline

__all__ = ["Bundle", "Exchange", "Follow", "Pipeline", "Pool", "Requirement", "Subscription"]
