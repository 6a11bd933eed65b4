"""Executes tasks of a broker in a Dask worker: connections persist between tasks, and end with the broker's pool.

ecCodes and netCDF are not thread-safe: in a process with several threads, one executes a task while others wait.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

import junctura
from junctura._progress import worded
from junctura.errors import Conflict, Corrupt, Error, Io, Unavailable
from junctura.products._tasks import task_messages
from junctura.products._tasks.codec import read_order
from junctura.products._tasks.task_messages import WORKER, BrokerJob
from junctura.products._tasks.tasks import DecodeInput, TaskOrder
from junctura.products._workers.worker_process import Worker

# One task at a time, of all brokers.
_ALONE = threading.Lock()


@dataclass(frozen=True)
class BrokerPlace:
    """The address of a broker, for its workers.

    Attributes
    ----------
    url
        URL of its pool.
    job
        The SHA-256 of the pickled job in the pool.
    version
        Version of the package.
    token, ca
        The credentials; not shown where Dask displays the arguments of a task.

    """

    url: str
    job: str
    version: str
    token: str = field(repr=False)
    ca: str = field(repr=False)


# By broker.
_workers: dict[BrokerPlace, Worker] = {}


def do(place: BrokerPlace, order: bytes) -> None:
    """Executes a task; its results are then in the broker's pool.

    Raises
    ------
    Unavailable
        This process cannot execute tasks of this broker; the cause gives the reason.

    """
    with _ALONE:
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            _do(_worker(place), read_order(order))
            return
        # The connection may have been lost although the broker is running.
        _workers.pop(place, None)
        _do(_worker(place), read_order(order))


def _do(worker: Worker, order: TaskOrder) -> None:
    # Dask does not report an earlier attempt by another worker, and decodes are counted.
    lost = task_messages.begin(worker.pool, order.number) if isinstance(order.task, DecodeInput) else 0
    if not (lost and task_messages.is_there(worker.pool, f"done/{order.number}")):
        worker.do(order, lost)


def _worker(place: BrokerPlace) -> Worker:
    if place not in _workers:
        try:
            _workers[place] = _opened(place)
        except Error as error:
            cause = f"a worker of Dask's on {socket.gethostname()} cannot do tasks: {worded(error)}"
            raise Unavailable(place.url, cause) from error
    return _workers[place]


def _opened(place: BrokerPlace) -> Worker:
    if place.version != junctura.__version__:
        raise Conflict("junctura", f"the broker has {place.version}, and the worker {junctura.__version__}")
    with tempfile.TemporaryDirectory(prefix="junctura-") as folder:
        token, ca = Path(folder, "token"), Path(folder, "ca.pem")
        # Only the owner may read it.
        token.touch(0o600)
        token.write_text(place.token)
        ca.write_text(place.ca)
        pool = junctura.Pool(place.url, name=WORKER, token_file=token, ca_file=ca)
    try:
        job = _job(pool, place.job)
    except BaseException:
        pool.close()
        raise
    worker = Worker(pool, job)
    threading.Thread(target=_attend, args=(place, worker), daemon=True).start()
    return worker


def _job(pool: junctura.Pool, digest: str) -> BrokerJob:
    with pool.demand(name="job", timeout=0) as obj:
        payload = bytes(obj)
    # A pickle can execute code.
    if hashlib.sha256(payload).hexdigest() != digest:
        raise Corrupt("job", "it is not the one that the broker has made")
    job = task_messages.read_job(payload)
    if not Path(job.out).is_dir():
        raise Io(job.out, "there is no such folder: products go to one that the workers of the cluster share")
    return job


def _attend(place: BrokerPlace, worker: Worker) -> None:
    """Executes hints of the broker, and releases everything when its pool ends."""
    with contextlib.suppress(Error):
        for obj in worker.pool.follow("kind=hint", gaps="ignore"):
            with obj:
                hint = task_messages.read_hint(bytes(obj))
            worker.warm(hint)
    with _ALONE:
        if _workers.get(place) is worker:
            del _workers[place]
        worker.close()
