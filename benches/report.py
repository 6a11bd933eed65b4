"""Renders the figures of the benchmarks as Markdown, from what they left in a folder.

``report.py`` prints tables; ``report.py --write docs/benchmarks.md`` puts them between the marks in that page.
Cases that were measured replace those of the same name there; all others stay.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from harness import FOREIGN_CORES_MAX, ROOT, number

BEGIN, END = "<!-- figures: benches/report.py writes between these marks -->", "<!-- end of figures -->"
ORDER = (
    "handover",
    "subscriptions",
    "pairs",
    "bundles",
    "spill",
    "list",
    "looking",
    "stuck",
    "hostile",
    "hostile_each",
    "hostile_turns",
    "network",
    "python_speed",
    "store",
    "store_scale",
    "store_packing",
    "store_commits",
    "store_load",
    "python_store",
    "arrays",
    "simulations",
    "meshes",
    "intercept",
    "products_transforms",
    "products_packing",
    "products",
    "products_wall",
    "products_files",
    "workflow",
)


def load(folder: Path) -> list[dict[str, Any]]:
    paths = [folder / f"{name}.json" for name in ORDER]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def render(documents: list[dict[str, Any]], present: str = "") -> str:
    """All tables: those of ``present``, which is such a text, with the measured cases in place of theirs."""
    measured = {(document["bench"], case["name"]) for document in documents for case in document["cases"]}
    names = {case for _, case in measured}
    table, *sections = re.split(r"(?m)^(?=### )", present.strip())
    kept = [row for row in table.splitlines() if row.startswith("|") and row.split(" | ")[0].strip("| ") not in names]
    parts: list[tuple[str, str]] = []
    for section in sections:
        bench = section.partition("\n")[0].removeprefix("### ").strip()
        head, *cases = re.split(r"(?m)^(?=\*\*[^*\n]+\*\*: )", section)
        if left := [case for case in cases if (bench, case[2:].partition("**")[0]) not in measured]:
            parts.append((bench, "\n\n".join(part.strip() for part in (head, *left))))
    parts += [(document["bench"], "\n\n".join(render_document(document))) for document in documents]
    parts.sort(key=lambda part: ORDER.index(part[0]))
    heads = ["| case | promise | measured | |", "|---|---|--:|---|"]
    rows = [row for row in kept if row not in heads] + promises(documents)
    return "\n\n".join(["\n".join(heads + rows), *(text for _, text in parts)])


def promises(documents: list[dict[str, Any]]) -> list[str]:
    """Rows of what has to come out, and whether it does."""
    rows = []
    for document in documents:
        for case in document["cases"]:
            for check in case["checks"]:
                verdict = "met" if check["met"] else "**not met**"
                rows.append(f"| {case['name']} | {escape(check['promise'])} | {check['value_text']} | {verdict} |")
    return rows


def render_document(document: dict[str, Any]) -> list[str]:
    machine, versions = document["machine"], document["versions"]
    where = f"{machine['cpu']}, {machine['cores']} cores{' of a virtual machine' if machine['virtual'] else ''}"
    where += f", {machine['memory_gib']} GiB, Linux {machine['kernel']}, load before {machine['load_before']}"
    said = ((name, version.removeprefix(f"{name} ")) for name, version in versions.items() if version)
    what = ", ".join(f"{name} {version}" for name, version in said)
    rounds = f"{document['rounds']} round{'s' if document['rounds'] > 1 else ''}" + (
        " (quick: the figures say little)" if document["quick"] else ""
    )
    head = f"### {document['bench']}\n\n`{document['command']}`, {document['when']}, {rounds}.\n{where}.\n{what}."
    return [head, *(render_case(case) for case in document["cases"])]


def render_case(case: dict[str, Any]) -> str:
    rows = [
        f"**{case['name']}**: {case['question']} ({case['unit']})",
        "",
        "| | best | min / median / max | the first is better by | payload | awaited |",
        "|---|--:|--:|--:|---|---|",
        *(render_contender(contender) for contender in case["contenders"]),
    ]
    return "\n".join(rows)


def render_contender(contender: dict[str, Any]) -> str:
    if "best" not in contender:
        return f"| {contender['name']} | - | | | | left out: {escape(contender['left_out'])} |"
    spread = " / ".join(number(contender[at]) for at in ("min", "median", "max"))
    ratio = contender.get("first_is_better_by")
    name = contender["name"]
    if max(contender["foreign_cores"]) > FOREIGN_CORES_MAX:
        name += " (disturbed)"
    words = [name, number(contender["best"]), spread, f"{ratio:.2f}" if ratio is not None else ""]
    return "| " + " | ".join([*words, contender["payload_touched"], escape(contender["awaited"])]) + " |"


def escape(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description="Render the figures of the benchmarks.")
    parser.add_argument("--out", default=str(ROOT / "bench-out"), help="folder with the figures")
    parser.add_argument("--write", metavar="PAGE", help="put the tables between the marks of this page")
    arguments = parser.parse_args()
    documents = load(Path(arguments.out))
    if not documents:
        print(f"report: there are no figures in {arguments.out} (make bench)", file=sys.stderr)
        return 1
    if not arguments.write:
        print(render(documents))
        return 0
    page = Path(arguments.write)
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    present, mark, after = rest.partition(END)
    if not mark:
        print(f"report: {page} has not both marks", file=sys.stderr)
        return 1
    tables = render(documents, present)
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
