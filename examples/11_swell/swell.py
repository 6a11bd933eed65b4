"""A small real forecast: one member of an ensemble of a jet that rolls up, by the shallow-water equations.

Each output step its fields go into a pool, a GRIB file, or nowhere. The end says what was conserved. With --ranks it is
a program of MPI: `mpirun -n 3 python swell.py --ranks`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jet
import numpy as np
from bands import Ranks, started_by_mpi
from checkpoints import Checkpoints
from harmonics import Harmonics
from outputs import Outputs
from shallow_water import DIFFUSION_H, RADIUS_M, TRUNCATION_MAX, TRUNCATION_MIN, Budget, Model, default_step_s

from junctura.errors import Error, InvalidArgument


def main() -> int:
    parser = _parser()
    given = parser.parse_args()
    try:
        _check(given)
        ranks = started_by_mpi() if given.ranks else Ranks()
    except InvalidArgument as error:
        parser.error(str(error))
    with ranks.failing_as_one():
        try:
            report = _forecast(given, ranks)
        except InvalidArgument as error:
            parser.error(str(error))
        except (Error, OSError) as error:
            parser.exit(1, f"{parser.prog}: {error}\n")
        ranks.tell(json.dumps(report) if given.json else _in_words(report), sys.stdout)
    return 0


def _forecast(given: argparse.Namespace, ranks: Ranks) -> dict[str, Any]:
    model = _start(given, ranks)
    first, begin = model.budget(), time.monotonic()
    outputs = Outputs(given, model)
    checkpoints = _checkpoints(given, model)
    with ExitStack() as stack:
        outputs.open(stack)
        if given.restart and checkpoints is not None:
            checkpoints.resume(model)
            if model.hour > given.hours:
                raise InvalidArgument(
                    "--restart", f"the latest checkpoint, of hour {model.hour:g}, is behind hour {given.hours}"
                )
        else:
            outputs.write()
        start = model.steps_done
        for hour in range(round(model.hour) + 1, given.hours + 1):
            for _ in range(3600 // model.step_s):
                model.step()
            if hour % given.every == 0:
                outputs.write()
            if checkpoints is not None and hour % given.checkpoint_every == 0:
                checkpoints.save(model)
    report = {"ranks": ranks.size, **_report(model, first)}
    report |= {"member": given.member, "steps": model.steps_done - start, "seconds": time.monotonic() - begin}
    nbytes = ranks.total(np.array([float(outputs.nbytes)]))
    return report | {"fields": outputs.fields, "bytes": int(nbytes[0])}


def _start(given: argparse.Namespace, ranks: Ranks) -> Model:
    harmonics = Harmonics(given.truncation, RADIUS_M, ranks)
    state = jet.steady(harmonics) if given.start == "steady" else jet.jet(harmonics, jet.bump_of(given.member))
    return Model(harmonics, state, step_s=given.step, diffusion_h=given.diffusion)


def _checkpoints(given: argparse.Namespace, model: Model) -> Checkpoints | None:
    if given.checkpoint is None:
        return None
    identity = {"expver": given.expver, "date": given.date, "truncation": given.truncation, "number": given.member}
    settings = f"start {given.start}, step {model.step_s} s, diffusion {given.diffusion:g} h"
    return Checkpoints(given.checkpoint, identity, settings)


def _report(model: Model, first: Budget) -> dict[str, Any]:
    last, was = asdict(model.budget()), asdict(first)
    return {
        "truncation": model.harmonics.truncation,
        "grid": f"F{model.harmonics.n}",
        "step_s": model.step_s,
        "hours": round(model.hour),
        "mean_depth_m": last["mass"],
        **{f"{name}_change": last[name] / was[name] - 1 for name in ("mass", "energy", "enstrophy")},
    }


def _in_words(report: dict[str, Any]) -> str:
    return (
        f"T{report['truncation']}, {report['grid']}, {report['hours']} hours in steps of {report['step_s']} s: "
        f"{report['steps']} steps in {report['seconds']:.1f} s, {report['fields']} fields, {report['bytes']} bytes; "
        f"changes since the start: mass {report['mass_change']:.1e}, energy {report['energy_change']:.1e}, "
        f"potential enstrophy {report['enstrophy_change']:.1e}"
    )


def _check(given: argparse.Namespace) -> None:
    given.hours = round(given.days * 24)
    step = default_step_s(given.truncation) if given.step is None else given.step
    wrong = {
        f"days {given.days:g}": given.hours < 1 or abs(given.hours - given.days * 24) > 1e-6,
        f"step {step} s": step < 1 or 3600 % step != 0,
        f"diffusion {given.diffusion:g} h": not given.diffusion > 0,
        f"every {given.every} h": given.every > given.hours,
    }
    causes = ("expected whole hours", "expected to go into an hour", "expected more than 0", "longer than the forecast")
    for (subject, is_wrong), cause in zip(wrong.items(), causes, strict=True):
        if is_wrong:
            raise InvalidArgument(subject, cause)
    if given.restart and given.checkpoint is None:
        raise InvalidArgument("--restart", "needs --checkpoint STORE")
    if given.ranks and given.out is not None:
        raise InvalidArgument("--out", "no rank has whole fields: take --pool, and a plan such as ranks.yaml")


def _hours(text: str) -> int:
    match = re.fullmatch(r"(\d+)([hd]?)", text)
    if match is None or int(match[1]) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 3h or 1d")
    return int(match[1]) * (24 if match[2] == "d" else 1)


def _day(text: str) -> int:
    try:
        return int(datetime.datetime.strptime(text, "%Y%m%d").strftime("%Y%m%d"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day such as 20261120") from None


def _expver(text: str) -> str:
    if re.fullmatch(r"[0-9a-z]{4}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not four small letters or digits")
    return text


def _truncation(text: str) -> int:
    if not text.isdecimal() or not TRUNCATION_MIN <= int(text) <= TRUNCATION_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not {TRUNCATION_MIN} to {TRUNCATION_MAX}")
    return int(text)


def _member(text: str) -> int:
    if not text.isdecimal() or int(text) > 254:
        raise argparse.ArgumentTypeError(f"{text!r} is not 0 (the control) to 254")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pool", metavar="URL", help="offer the fields to this pool, which has the schema mars")
    add("--out", type=Path, metavar="FILE", help="write the fields into this GRIB file; --restart appends")
    add("--member", type=_member, default=0, metavar="K", help="which member of the ensemble; 0 is the control (0)")
    text = "largest total wavenumber, 42 to 213 is usual (63)"
    add("--truncation", type=_truncation, default=63, metavar="T", help=text)
    add("--days", type=float, default=5.0, help="how long, in days (5)")
    add("--every", type=_hours, default=3, metavar="TIME", help="output every so often, as 3h or 1d (3h)")
    add("--start", choices=("jet", "steady"), default="jet", help="a jet that rolls up, or a steady flow (jet)")
    add("--date", type=_day, default=20261120, metavar="YYYYMMDD", help="day of the start, at 00 UTC (20261120)")
    add("--expver", type=_expver, default="swel", help="version of the experiment, four characters (swel)")
    text = "time step in seconds, which goes into an hour (by the truncation: 900 for T63, 450 for T106)"
    add("--step", type=int, metavar="SECONDS", help=text)
    text = f"hours in which diffusion takes the smallest scale down to 1/e ({DIFFUSION_H:g})"
    add("--diffusion", type=float, default=DIFFUSION_H, metavar="HOURS", help=text)
    add("--checkpoint", type=Path, metavar="STORE", help="keep checkpoints in this store, which is made if need be")
    text = "a checkpoint every so often (24h)"
    add("--checkpoint-every", type=_hours, default=24, metavar="TIME", help=text)
    add("--restart", action="store_true", help="go on from the latest checkpoint in the store")
    add("--ranks", action="store_true", help="started by mpirun: ranks share the work, gridded fields go out in pieces")
    add("--json", action="store_true", help="print the end's report as JSON, changes as fractions")
    return parser


if __name__ == "__main__":
    sys.exit(main())
