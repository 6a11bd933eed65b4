"""Metrics and health of a server, as Prometheus and service managers get them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from socket import create_connection, create_server

import pytest
from e2e_shell import Shell

import junctura

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="pip prometheus-client is not installed")
pytestmark = pytest.mark.skipif(
    "JUNCTURA_TEST_DETOUR" in os.environ, reason="a board is memory of the server's machine"
)

MONITORING = Path(__file__).resolve().parents[2] / "docs/monitoring"
TOKEN = "a-token-of-some-length"


def connect(shell: Shell, name: str = "judge-1") -> junctura.Pool:
    return junctura.Pool(f"unix:{shell.folder}/junctura/test.sock", schema="free", name=name)


def sums(text: str) -> dict[str, float]:
    """The sum of each name's samples, as the parser of Prometheus' own client reads them."""
    found: dict[str, float] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def scrape(address: str, token: str | None = None) -> str:
    request = urllib.request.Request(address)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        text: str = response.read().decode()
    return text


def load(shell: Shell) -> None:
    with connect(shell) as pool, connect(shell, "reader-2") as reader:
        for number in range(20):
            pool.offer(b"x" * 1000 * number, name=str(number), odd=str(number % 2))
        requirement = pool.require("odd=1", name="plots")
        for number in range(0, 20, 2):
            reader.demand(name=str(number)).release()
        pool.withdraw(name="4")
        reader.sync()
        requirement.retract()


def test_sums_are_those_of_stat(shell: Shell) -> None:
    load(shell)
    stat, metrics = shell.stat(), sums(shell.text("metrics"))
    totals, objects = stat["totals"], stat["objects"]
    for name, number in {
        "junctura_objects_offered_total": totals["offered"],
        "junctura_offered_bytes_total": totals["offered_bytes"],
        "junctura_objects_delivered_total": totals["delivered"],
        "junctura_delivered_bytes_total": totals["delivered_bytes"],
        "junctura_objects_released_total": totals["released"],
        "junctura_objects_visible": objects["visible"],
        "junctura_objects_visible_bytes": objects["visible_bytes"],
        "junctura_objects_gone_total": totals["withdrawn"] + totals["expired"] + totals["superseded"],
        "junctura_tombstones": objects["tombstones"],
        "junctura_memory_used_bytes": stat["memory"]["used_bytes"],
        "junctura_object_size_bytes_count": totals["offered"],
        "junctura_object_size_bytes_sum": totals["offered_bytes"],
        "junctura_board_up": 1,
    }.items():
        assert metrics[name] == number, name


def test_names_need_a_token(bare: Shell, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    server = bare.start(
        *("pool", "serve", "--metrics", "127.0.0.1:0", "--metrics-token-file", str(token), "--pool", bare.pool)
    )
    assert "serving" in server.said()
    address = server.said().split()[-1]
    load(bare)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        scrape(address)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        scrape(address, TOKEN[:-1])
    with connect(bare) as pool:
        pool.board()
    text = scrape(address, TOKEN)
    assert 'component="judge-*"' in text
    assert 'component="reader-*"' in text


def test_without_a_token_names_are_left_out(bare: Shell) -> None:
    server = bare.start("pool", "serve", "--metrics", "127.0.0.1:0", "--pool", bare.pool)
    assert "serving" in server.said()
    address = server.said().split()[-1]
    load(bare)
    with connect(bare) as pool:
        pool.board()
    text = scrape(address)
    assert sums(text)["junctura_objects_offered_total"] == 20
    assert "judge" not in text
    assert "space" not in text
    server.signal(signal.SIGTERM)
    assert server.end()[0] == 0


def test_peers_that_send_nothing_keep_no_scraper_out(bare: Shell) -> None:
    server = bare.start("pool", "serve", "--metrics", "127.0.0.1:0", "--pool", bare.pool)
    assert "serving" in server.said()
    address = server.said().split()[-1]
    host = urllib.parse.urlsplit(address)
    with contextlib.ExitStack() as stack:
        for sent in (b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 9):
            for _ in range(20):
                peer = stack.enter_context(create_connection((host.hostname, host.port)))
                peer.sendall(sent)
        assert sums(scrape(address))["junctura_board_up"] == 1
        # The answer to a head that is too long, or the end of the connection.
        long = stack.enter_context(create_connection((host.hostname, host.port)))
        with contextlib.suppress(OSError):
            long.sendall(b"GET /metrics HTTP/1.1\r\n" + b"a" * (1 << 20))
        with contextlib.suppress(OSError):
            assert long.recv(100)[:12] in (b"HTTP/1.1 431", b"")
        assert sums(scrape(address))["junctura_board_up"] == 1


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:9464"])
def test_an_address_off_loopback_is_refused(bare: Shell, address: str) -> None:
    assert "loopback" in bare.error(2, "pool", "serve", "--metrics", address)


def test_a_short_token_is_refused(bare: Shell, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short")
    arguments = ("--metrics", "127.0.0.1:0", "--metrics-token-file", str(tmp_path / "token"))
    assert "16 characters" in bare.error(2, "pool", "serve", *arguments)


def test_the_textfile_is_whole_and_goes_with_the_server(bare: Shell, tmp_path: Path) -> None:
    path = tmp_path / "junctura.prom"
    server = bare.serve("--metrics-textfile", str(path))
    assert sums(path.read_text())["junctura_board_up"] == 1
    assert path.stat().st_mode & 0o777 == 0o644
    server.signal(signal.SIGTERM)
    assert server.end()[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_health(bare: Shell) -> None:
    bare.error(3, "pool", "health")
    bare.serve()
    assert bare.text("pool", "health") == "serving\n"
    with connect(bare) as pool, pool.require("", name="plots"), connect(bare) as reader:
        pool.offer(b"x", name="a")
        stop = bare.start("pool", "stop")
        with pytest.raises(junctura.Closed, match="draining"):
            pool.demand(name="never")
        assert "draining" in bare.error(1, "pool", "health")
        assert bare.text("pool", "health", "--live") == "draining\n"
        with reader.require("", name="plots") as plots, plots.follow(until_live=True) as follow:
            for obj in follow:
                obj.release()
        assert stop.end()[0] == 0


def test_a_stopped_server_is_noticed_by_its_board_and_by_health(bare: Shell) -> None:
    server = bare.serve()
    with connect(bare) as pool:
        pool.offer(b"x", name="a")
        board = pool.board()
        server.signal(signal.SIGSTOP)
        try:
            while board.turn_age < 3:
                os.sched_yield()
            numbers = board.snapshot()
            assert numbers["counters"]["offered"] == 1
            assert "does not answer" in bare.error(4, "pool", "health", "--timeout", "1s")
            for command in ("get", "wait-for", "pool withdraw-all", "pool stop", "pool withdraw"):
                words = [*command.split(), *(["name=a"] if command != "pool stop" else [])]
                assert "in time" in bare.error(4, *words, "--timeout", "100ms"), command
        finally:
            server.signal(signal.SIGCONT)
        while board.turn_age > 3:
            os.sched_yield()
        assert bare.text("pool", "health") == "serving\n"


def test_rules_and_dashboard_name_families_of_the_text(shell: Shell) -> None:
    text = shell.text("metrics")
    names = {sample for family in parser.text_string_to_metric_families(text) for sample in family_names(family)}
    rules = (MONITORING / "junctura.rules.yaml").read_text()
    dashboard = json.loads((MONITORING / "junctura.grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for word in words(rules) | {word for expr in asked for word in words(expr)}:
        assert word in names, word


def family_names(family: object) -> set[str]:
    name, kind = family.name, family.type  # type: ignore[attr-defined]
    suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "info": ["_info"]}
    return {name + suffix for suffix in suffixes.get(kind, [""])}


def words(text: str) -> set[str]:
    letters = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text)
    return {word for word in letters.split() if word.startswith("junctura_")}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="prometheus is not installed")
def test_promtool_accepts_the_rules() -> None:
    rules = MONITORING / "junctura.rules.yaml"
    subprocess.run(["promtool", "check", "rules", str(rules)], check=True, timeout=60, capture_output=True)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_a_real_prometheus_scrapes(bare: Shell, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    server = bare.start(
        *("pool", "serve", "--metrics", "127.0.0.1:0", "--metrics-token-file", str(token), "--pool", bare.pool)
    )
    assert "serving" in server.said()
    target = server.said().split()[-1].removeprefix("http://").removesuffix("/metrics")
    load(bare)
    (tmp_path / "prometheus.yaml").write_text(
        f"global: {{scrape_interval: 1s}}\nrule_files: [{MONITORING}/junctura.rules.yaml]\n"
        f"scrape_configs:\n- job_name: junctura\n  authorization: {{credentials_file: {token}}}\n"
        f"  static_configs: [{{targets: ['{target}']}}]\n"
    )
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [f"--config.file={tmp_path}/prometheus.yaml", f"--storage.tsdb.path={tmp_path}/data"]
    with subprocess.Popen(
        ["prometheus", *arguments, f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL
    ) as prometheus:
        try:
            query = f"http://127.0.0.1:{port}/api/v1/query?query=sum(junctura_objects_offered_total)"
            while not (answer := ask(query)):
                assert prometheus.poll() is None
            assert float(answer[0]["value"][1]) == 20
        finally:
            prometheus.terminate()


def ask(url: str) -> list[dict[str, list[str]]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            result: list[dict[str, list[str]]] = json.load(response)["data"]["result"]
    except OSError:  # It does not listen yet.
        return []
    return result
