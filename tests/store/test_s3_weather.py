"""An object store at the end of a road that breaks: what was said to be flushed is there, and no flush in part."""

from __future__ import annotations

import urllib.parse

import pytest
from link_weather import Weather

import junctura

FLUSHES = 30
OBJECTS = 4


def payload(flush: int, number: int) -> bytes:
    """Within the commit for some flushes, in an object of its own for others."""
    return f"{flush} {number} ".encode() * (20_000 if flush % 2 else 10)


def has_flushed(store: junctura.Store, flush: int) -> bool:
    """False: it is not known whether it is there."""
    try:
        for number in range(OBJECTS):
            store.archive(payload(flush, number), flush=f"{flush}", name=f"{flush}-{number}")
        store.flush()
    except (junctura.errors.Unavailable, junctura.errors.Io):
        store.discard()
        return False
    return True


# Each connection ends after so many bytes, many times in a run: 6 MB are sent, and each flush has several answers.
# So it breaks within what is sent, and within answers, when all was done.
@pytest.mark.parametrize(("stream", "nbytes"), [("upstream", 600_000), ("downstream", 1_700)])
def test_all_that_was_flushed_over_a_road_that_breaks_is_there(
    url: str, weather: Weather, stream: str, nbytes: int
) -> None:
    straight = junctura.Store.create(url, schema="free")
    endpoint = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["endpoint"][0]
    road = weather.road_to(endpoint.replace("http://", "tcp://")).replace("tcp://", "http://")
    toxic = {"name": "break", "type": "limit_data", "stream": stream, "attributes": {"bytes": nbytes}}
    weather.ask("POST", "/proxies/road/toxics", toxic)
    store = junctura.Store(url.replace(endpoint, road))
    flushed = [has_flushed(store, flush) for flush in range(FLUSHES)]
    assert any(flushed)
    there: dict[int, list[bytes]] = {}
    for obj in straight.list():
        there.setdefault(int(str(obj["flush"])), []).append(obj.read())
    for flush, is_known in enumerate(flushed):
        whole = [payload(flush, number) for number in range(OBJECTS)]
        assert there.get(flush) == whole or (not is_known and flush not in there), flush
    assert straight.check().damaged_count == 0
