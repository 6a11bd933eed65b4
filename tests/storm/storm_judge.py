"""What the records of a storm have to show, whoever was killed.

`junctura load pool --history DIR` writes a file for each process, one JSON object a line, before the process goes on; a
process that was killed has no `end` line, and its last line may be torn. From these:

- nothing is delivered that nobody offered, and what is delivered has the bytes that were offered;
- what was acknowledged is received by those in no group, and completed once in each group;
- within a group, what is given to a second member is marked as redelivered;
- in one session, nobody is given a version twice, unless it is marked;
- a gap has only what its reader, or the killed one that it replaces, has had before.

An offer that was under way when its producer died may have taken effect or not; if one reader has seen it, all must. A
release that was under way when its member died may have been taken or not.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Object = tuple[str, str]


def read(path: Path) -> Iterator[Row]:
    """The lines of a record, but for a torn last one."""
    with path.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                return
            row: Row = json.loads(line)
            yield row


@dataclass
class Reader:
    """What one consumer did."""

    name: str
    group: str | None = None
    got: list[tuple[int, str, bool]] = field(default_factory=list)
    releasing: set[str] = field(default_factory=set)
    released: Counter[str] = field(default_factory=Counter)
    # Why, and the versions that it had not received by then.
    gaps: list[tuple[str, list[str]]] = field(default_factory=list)
    ended: bool = False


@dataclass
class Verdict:
    """What was found."""

    acknowledged: int = 0
    deliveries: int = 0
    under_way: int = 0
    lost: int = 0
    groups: int = 0
    broken: list[str] = field(default_factory=list)


class Judge:
    """Reads the records of one run, producers first."""

    def __init__(self, directory: Path, *, is_whole: bool, is_shared: bool) -> None:
        self.verdict = Verdict()
        self.is_whole, self.is_shared = is_whole, is_shared
        self.objects: dict[str, Object] = {}
        self.perhaps: set[Object] = set()
        self.readers: list[Reader] = []
        records = {path.stem: path for path in sorted(directory.glob("*.jsonl"))}
        roles = {name: next(read(path), {}).get("role") for name, path in records.items()}
        for name in records:
            if roles[name] == "producer":
                self.producer(records[name])
        for name in records:
            if roles[name] == "consumer":
                self.reader(name, records[name])

    def say(self, text: str) -> None:
        self.verdict.broken.append(text)

    def producer(self, path: Path) -> None:
        under_way: dict[int, Object] = {}
        for row in read(path):
            if row["op"] == "offering":
                under_way[row["n"]] = (row["id"], row["sum"])
            elif row["op"] == "offered":
                if self.objects.setdefault(row["version"], under_way[row["n"]]) != under_way.pop(row["n"]):
                    self.say(f"{row['version']} was given to two offers")
                self.verdict.acknowledged += 1
        self.verdict.under_way += len(under_way)
        self.perhaps.update(under_way.values())

    def reader(self, name: str, path: Path) -> None:
        reader = Reader(name)
        session: set[str] = set()
        for row in read(path):
            if row["op"] == "start":
                reader.group = row["group"]
            elif row["op"] == "following":
                session.clear()
            elif row["op"] == "got":
                self.delivered(name, row)
                if row["version"] in session and not row["redelivered"]:
                    self.say(f"{name} got {row['version']} twice in one session")
                session.add(row["version"])
                reader.got.append((row["t"], row["version"], row["redelivered"]))
            elif row["op"] == "releasing":
                reader.releasing.add(row["version"])
            elif row["op"] == "released":
                reader.released[row["version"]] += 1
            elif row["op"] == "gap":
                self.gap(reader, row)
            elif row["op"] == "end":
                reader.ended = True
        self.readers.append(reader)

    def gap(self, reader: Reader, row: Row) -> None:
        # One that follows anew may hear that what it has had is going.
        had = {version for _, version, _ in reader.got}
        missed = [version for _, version in row["items"] if version not in had]
        if missed or not row["items"]:
            reader.gaps.append((row["reason"], missed))

    def gaps(self, readers: list[Reader], completed: set[str]) -> None:
        for reader in readers:
            for reason, versions in reader.gaps:
                missed = [version for version in versions if version not in completed]
                if missed or not versions:
                    self.say(f"{reader.name} was told of a gap ({reason}): {missed}")

    def delivered(self, name: str, row: Row) -> None:
        self.verdict.deliveries += 1
        what = (row["id"], row["sum"])
        if row["version"] not in self.objects and what in self.perhaps:
            self.objects[row["version"]] = what
        offered = self.objects.get(row["version"])
        if offered is None:
            self.say(f"{name} got {row['id']} {row['version']}, which nobody offered")
        elif offered != what:
            self.say(f"{name} got {what} as {row['version']}, which is {offered}")

    def judge(self) -> Verdict:
        groups: dict[str | None, list[Reader]] = defaultdict(list)
        for reader in self.readers:
            groups[reader.group].append(reader)
        alone = groups.pop(None, [])
        for readers in [alone] if self.is_shared and alone else [[reader] for reader in alone]:
            received = {version for reader in readers for _, version, _ in reader.got}
            self.missing(", ".join(reader.name for reader in readers), received)
            # One that replaces a killed one may hear that what that one completed is going.
            completed = {version for reader in readers if not reader.ended for version in reader.releasing}
            self.gaps(readers, completed if self.is_shared else set())
        for group, members in groups.items():
            self.group(str(group), members)
        self.verdict.groups = len(groups)
        return self.verdict

    def group(self, group: str, members: list[Reader]) -> None:
        self.gaps(members, set())
        released: Counter[str] = sum((member.released for member in members), Counter())
        for version, times in released.items():
            if times > 1:
                self.say(f"{group} completed {version} {times} times")
        perhaps = {version for one in members if not one.ended for version in one.releasing}
        self.missing(group, released.keys() | perhaps)
        given: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        for member in members:
            for at, version, again in member.got:
                given[version].append((at, again))
        for version, times_given in given.items():
            if any(not again for _, again in sorted(times_given)[1:]):
                self.say(f"{group} was given {version} again without a mark")

    def missing(self, who: str, received: set[str]) -> None:
        lost = self.objects.keys() - received
        self.verdict.lost += len(lost)
        for version in sorted(lost)[:5] if self.is_whole else ():
            self.say(f"{who} never had {version} {self.objects[version][0]} ({len(lost)} in all)")


def judge(directory: Path, *, is_whole: bool = True, is_shared: bool = True) -> Verdict:
    """Judges the records in a folder.

    Of a run that is not whole, what was not received is counted and no fault. Consumers in no group share the objects,
    or each of them is to receive all.
    """
    return Judge(directory, is_whole=is_whole, is_shared=is_shared).judge()
