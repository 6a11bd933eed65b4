"""What tests of plans have in common: fields that a model offers, and plans that run meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from broker_runs import BASE, GRID, grid_message

import junctura
from junctura.products import Ran, run
from junctura.products._plan import plan_of

Work = Callable[[junctura.Pool], None]
SHAPE = (2 * GRID, 4 * GRID)
RNG = np.random.default_rng(5)


def through(folder: Path, text: str, work: Work) -> list[Ran]:
    """What becomes of what a model offers."""
    file = folder / "plan.yaml"
    file.write_text(text)
    ran: list[Ran] = []
    with junctura.Pool(schema="mars") as pool, pool.subscribe(kinds=["expired"]) as gone:
        model = junctura.Pool(pool.url, name="model")

        def go() -> None:
            plan = plan_of([file])
            assert plan is not None
            options: dict[str, Any] = {"workers": 1, "until_gone": ["model"], "told": lambda _: None}
            ran.append(run(plan, pool.url, folder / "out", **options))

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        work(model)
        leaves_when_read(model, pool, gone)
        thread.join()
    return ran


def by_command(folder: Path, text: str, work: Work, *options: str) -> subprocess.CompletedProcess[str]:
    """What the command does with a plan, and says, of what a model offers."""
    (folder / "plan.yaml").write_text(text)
    with junctura.Pool(schema="mars") as pool, pool.subscribe(kinds=["expired"]) as gone:
        model = junctura.Pool(pool.url, name="model")
        work(model)
        command = [sys.executable, "-m", "junctura.products", str(folder / "plan.yaml"), "--pool", pool.url]
        command += ["--out", str(folder / "out"), "--until-gone", "model", *options]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        leaves_when_read(model, pool, gone)
        out, said = program.communicate(timeout=100)
    return subprocess.CompletedProcess(command, program.returncode, out, said)


def leaves_when_read(model: junctura.Pool, pool: junctura.Pool, gone: junctura.Subscription) -> None:
    """What was offered goes when it has been through: then it is known who the model is, and it may leave."""
    while pool.list():
        gone.next(timeout=60)
    model.close()


def fields(*steps: int) -> dict[int, np.ndarray[Any, Any]]:
    return {step: 280 + RNG.normal(size=SHAPE) for step in steps}


def give(pool: junctura.Pool, message: bytes, **words: Any) -> None:
    pool.offer(message, {**BASE, **words}, retention=junctura.Released(1))


def offers(values: dict[int, np.ndarray[Any, Any]], **words: Any) -> Work:
    def work(pool: junctura.Pool) -> None:
        for step, field in values.items():
            give(pool, grid_message(field, step=step), step=step, **{"param": "t", **words})

    return work


def offer_array(pool: junctura.Pool, values: np.ndarray[Any, Any], **words: Any) -> None:
    """In pieces, of which there is one."""
    shape = "x".join(map(str, values.shape))
    pool.offer_piece(values, f"shape={shape}", 0, {**BASE, **words}, retention=junctura.Released(1))
