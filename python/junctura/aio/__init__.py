"""The pool for asyncio: the same methods as coroutines.

Every method that may block is a coroutine here, follows and subscriptions are asynchronous iterators, and nothing
blocks the event loop. Waits need no thread: the loop watches the pool's file descriptor, one for all waiting tasks.
Tasks of several loops, and threads, may share a pool.

Cancelling a task loses nothing: its demand is cancelled, and an object that was in flight to the task is given back as
if it had never been received, so that a group or requirement redelivers it. A cancelled offer takes effect completely
or not at all.

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
