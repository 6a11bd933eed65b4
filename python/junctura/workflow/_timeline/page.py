"""The page around the picture: a title, the chain as text, and a table for accessibility."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timezone
from pathlib import Path

from junctura.workflow._record.critical_path import Attribution, Link
from junctura.workflow._record.history import Course, History
from junctura.workflow._timeline import telling
from junctura.workflow._timeline.canvas import escape
from junctura.workflow._timeline.drawing import Drawing, cores
from junctura.workflow._view.text_format import clean, count, seconds, size

_ROWS_MAX = 5000
_LINKS_SHOWN = 40
_WARNINGS_SHOWN = 20
_COLUMNS = ("task", "ended", "why it started", "began", "ran", "attempts", "waited for", "cause")
_NUMBERS = ("began", "ran", "attempts")


def page(history: History) -> str:
    """Returns a run as a self-contained HTML page."""
    attribution = Attribution(history)
    chain = attribution.chain()
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    name = escape(history.last.workflow or "A run", 120)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{name}, a run of {_day(history.first.begin_at)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{name}</h1>
<p class="from">{_origin(history)}</p>
{_summary(history)}
{_warnings(history)}<figure>
{Drawing(history, attribution, chain).svg()}
</figure>
<section class="after">
<h2>What decided the length</h2>
{_chain(chain, attribution.clock.length)}
</section>
<section>
<h2>Tasks</h2>
{_table(history, attribution)}
</section>
<footer>{_remarks(history)}</footer>
</main>
</body>
</html>
"""


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _origin(history: History) -> str:
    first, last = history.first, history.last
    parts = [f"run {clean(last.run, 80)}" if last.run else "", f"of {clean(last.file, 120)}" if last.file else ""]
    told = [" ".join(part for part in parts if part), f"from {_day(first.begin_at)}"]
    told += [f"on {clean(last.host, 60)}"] if last.host else []
    told += [f"pool {clean(last.pool, 80)}"] if last.pool else []
    told += [f"resumed {_times(len(history.sessions) - 1)}"] if len(history.sessions) > 1 else []
    return escape(" · ".join(one for one in told if one), 600)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _summary(history: History) -> str:
    courses = history.tasks
    ended = {word: history.count(word) for word in ("done", "failed", "skipped", "cancelled")}
    again = sum(max(0, len(course.attempts) - 1) for course in courses)
    most, mean, known = cores(history)
    objects = [event for event in history.events if event.kind == "offered"]
    figures = [
        ("the run took", seconds(history.seconds), ""),
        ("it ended", history.last.status or "without a word", ""),
    ]
    figures.append(("tasks", f"{len(courses):,}", ""))
    figures += [(word, f"{some:,}", "bad-word" if word == "failed" else "") for word, some in ended.items() if some]
    figures += [("warnings", f"{len(history.warned):,}", "")] if history.warned else []
    figures += [("attempts after the first", f"{again:,}", "")] if again else []
    figures.append(
        (f"{'cores' if known else 'tasks'} at once, at most and on average", f"{most:,.0f} · {mean:.1f}", "")
    )
    if objects:
        total = sum(event.nbytes for event in objects)
        figures.append(("objects offered", f"{len(objects):,}" + (f" · {size(total)}" if total else ""), ""))
    shown = (f'<div><dt>{name}</dt><dd class="{css}">{escape(value)}</dd></div>' for name, value, css in figures)
    return f'<dl class="summary">{"".join(shown)}</dl>'


def _warnings(history: History) -> str:
    shown = [
        f"<li><b>{escape(one.name)}</b>: {escape(one.cause, 600)}</li>" for one in history.warned[:_WARNINGS_SHOWN]
    ]
    more = len(history.warned) - len(shown)
    shown += [f"<li>and {more:,} more</li>"] if more else []
    return f"<section>\n<h2>Warnings</h2>\n<ul>{''.join(shown)}</ul>\n</section>\n" if shown else ""


def _chain(chain: list[Link], length: float) -> str:
    shown = sorted(sorted(chain, key=lambda link: -link.seconds)[:_LINKS_SHOWN], key=lambda link: link.begin)
    items = [f"<li>{_link(link, length)}</li>" for link in shown if link.seconds >= 0.0005 * length]
    left = length - sum(link.seconds for link in shown if link.seconds >= 0.0005 * length)
    short = len(chain) - len(items)
    rest = f"<p>And {count(short, 'short link')} besides, together {seconds(max(0.0, left))}.</p>" if short else ""
    said = "<p>The chain of tasks and waits that decided when the run ended, from its beginning on.</p>"
    return f"{said}<ol>{''.join(items)}</ol>{rest}"


def _link(link: Link, length: float) -> str:
    share = f"{100 * link.seconds / max(length, 1e-9):.0f} %"
    time = f"<span>from {seconds(link.begin)}:</span> {seconds(link.seconds)} <span>({share})</span>"
    if link.kind == "run":
        return f"{time} <b>{escape(link.task)}</b> {escape(link.words)}"
    if not link.task:
        return f"{time} {escape(link.words)}" if link.kind == "end" else f"{time} for {escape(link.words)}"
    return f"{time} <b>{escape(link.task)}</b> waits for {escape(link.words, 300)}"


def _table(history: History, attribution: Attribution) -> str:
    courses = history.tasks
    said = f"{count(len(courses), 'task')}, each with what it waited for and for how long."
    if len(courses) > _ROWS_MAX:
        courses = sorted(courses, key=lambda one: one.outcome == "done")[:_ROWS_MAX]
        said += f" The table has {_ROWS_MAX:,} of them, those first that are not done."
    heads = "".join(f'<th scope="col"{_css(name)}>{name}</th>' for name in _COLUMNS)
    rows = "\n".join(_row(course, history, attribution) for course in courses)
    table = f"<table><caption>{said}</caption><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _css(column: str) -> str:
    return ' class="number"' if column in _NUMBERS else ""


def _row(course: Course, history: History, attribution: Attribution) -> str:
    last = course.attempts[-1] if course.attempts else None
    ran = [history.end_of(one) - history.begin_of(one) for one in course.attempts]
    began = seconds(attribution.clock(history.begin_of(course.attempts[0]))) if last else ""
    kind = "" if course.of == course.name else f" <small>{escape(course.of, 60)}</small>"
    service = " <small>service</small>" if course.service else ""
    ended = telling.ended(course)
    cause = course.cause or (last.cause if last else "")
    cells = (
        f'<td class="{"failed" if ended == "failed" else ""}">{ended}</td>',
        f"<td>{escape(telling.reason(course), 600)}</td>",
        f'<td class="number">{began}</td>',
        f'<td class="number">{seconds(sum(ran)) if ran else ""}</td>',
        f'<td class="number">{len(course.attempts) or ""}</td>',
        f"<td>{escape(telling.waited(course, attribution), 600)}</td>",
        f"<td>{escape(cause)}</td>",
    )
    return f'<tr><th scope="row">{escape(course.name)}{kind}{service}</th>{"".join(cells)}</tr>'


def _remarks(history: History) -> str:
    told = ["Times are seconds of the run; what lay between its sessions does not count."] * (len(history.sessions) > 1)
    if not history.last.status:
        told.append("The record has no end: the run goes on, or was stopped.")
    if history.left_out:
        told.append(f"{count(history.left_out, 'line')} of the record made no sense and were left out.")
    if history.events_left_out:
        told.append(f"{count(history.events_left_out, 'event')} more were in the pool than can be shown.")
    version = f" {escape(history.last.version, 40)}" if history.last.version else ""
    return " ".join([*told, f"Recorded by Junctura{version}."])
