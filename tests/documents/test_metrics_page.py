"""docs/metrics.md is the table of metrics, row for row; dashboard and alert rules name what a live service tells.

To remake the table: python tests/documents/test_metrics_page.py
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hubweir.alarms import KINDS
from hubweir.cli.main import hubweir
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.metrics import METRICS
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.testing.running_namespace import running_namespace
from tests.workers.notices import notice

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "metrics.md"
START, END = "<!-- metrics: from src/hubweir/metrics.py -->\n", "<!-- end of metrics -->"
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "hubweir.json"
NAME = re.compile(r"\b(?:hubweir|process)_[a-z_]+\b(?!\s*\()")
PATIENCE_S = 30.0


# The table


def rows() -> str:
    lines = ["| metric | kind | labels | what it says | Azure's |", "|---|---|---|---|---|"]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        cells = (f"`{metric.shown}`", metric.kind.value, labels, metric.meaning, metric.cloud)
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def remade(page: str) -> str:
    before, rest = page.split(START)
    return before + START + rows() + END + rest.split(END)[1]


def test_the_page_has_every_metric_as_the_code_has_it() -> None:
    page = PAGE.read_text()
    assert remade(page) == page, "run: ./run python tests/documents/test_metrics_page.py"


# Who may read it


def test_the_token_of_the_page_opens_the_metrics_as_prometheus_shows_it() -> None:
    page = PAGE.read_text()
    [command] = re.findall(r"^\$ hubweir (sas make .*) > (\S+)$", page, re.MULTILINE)
    [scraped] = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0])["scrape_configs"]
    assert scraped["authorization"] == {"credentials_file": command[1]}  # the scheme is Bearer where none is said
    assert scraped["static_configs"] == [{"targets": ["127.0.0.1:5672"]}]
    with running_namespace(metrics="token") as namespace:
        where = {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
        token = CliRunner().invoke(hubweir, shlex.split(command[0]), env=where).output.strip()
        assert status(namespace.port, {"Authorization": f"Bearer {token}"}) == 200
        assert status(namespace.port, {"Authorization": f"Bearer {token[:-1]}"}) == status(namespace.port, {}) == 401


def status(port: int, headers: dict[str, str]) -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/metrics", headers=headers)
        return connection.getresponse().status


# What is deployed beside a service


@pytest.fixture(scope="module")
def scraped() -> Iterator[str]:
    """The page of a service that has something of everything."""
    with running_namespace() as namespace:
        namespace.create_queue("orders")
        namespace.create_event_hub("flights", capture=CaptureDescription(True))
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "flights") as client:
            client.sender().send([b"event"])
            assert client.receiver("0").receive(max_wait_s=PATIENCE_S)
            with closing(HTTPConnection(namespace.host, namespace.port, timeout=PATIENCE_S)) as connection:
                connection.request("GET", "/metrics")
                yield connection.getresponse().read().decode()


def expressions() -> dict[str, str]:
    """Every expression of rules and dashboard, by where it stands."""
    found = {
        f"alert {rule['alert']}": rule["expr"]
        for group in yaml.safe_load(RULES.read_text())["groups"]
        for rule in group["rules"]
    }
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            found[f"panel {panel['title']} {target['refId']}"] = target["expr"]
    for variable in dashboard["templating"]["list"]:
        if isinstance(variable["query"], dict):
            found[f"variable {variable['name']}"] = variable["query"]["query"]
    return found


def unknown(said: dict[str, str], page: str) -> list[str]:
    """Names of metrics in expressions that no sample of a page has."""
    there = set(re.findall(r"^([a-z_]+)[ {]", page, re.MULTILINE))
    return [f"{where}: {name}" for where, text in said.items() for name in NAME.findall(text) if name not in there]


def test_rules_and_dashboard_name_metrics_that_a_service_tells(scraped: str) -> None:
    said = expressions()
    assert len(said) > 40 and not unknown(said, scraped)


def test_control_arm_a_name_that_nobody_tells_is_found(scraped: str) -> None:
    planted = {"alert Planted": "sum by (entity) (rate(hubweir_incoming_message_total[5m])) > hubweir_size_bytes"}
    assert unknown(planted, scraped) == ["alert Planted: hubweir_incoming_message_total"]


def test_they_select_by_labels_that_there_are() -> None:
    known = {label for metric in METRICS for label in metric.labels} | {"instance", "job", "le", "process"}
    for where, text in expressions().items():
        by = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", text) for label in group.split(",")}
        matched = set(re.findall(r"[{,]\s*([a-z_]+)\s*(?:=|!=|=~|!~)", text))
        assert by | matched <= known, where


def test_the_rules_know_which_alarms_keep_clients_out() -> None:
    rules = RULES.read_text()
    blocking = "|".join(kind.name for kind in KINDS if kind.blocks)
    assert f'kind=~"{blocking}"' in rules and f'kind!~"{blocking}"' in rules


def test_each_rule_says_what_to_do_on_a_page_that_is_there() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
            assert rule["labels"]["severity"] in ("critical", "warning")
            assert set(rule["annotations"]) == {"summary", "description"}
            for page in re.findall(r"docs/[a-z_]+\.md", rule["annotations"]["description"]):
                assert (ROOT / page).exists()


def test_panels_have_ids_and_places_of_their_own_and_data_from_the_source_that_is_chosen() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["targets"] and panel["datasource"]["uid"] == "${datasource}"


@pytest.fixture
def promtool(pytestconfig: pytest.Config) -> str:
    found = shutil.which("promtool")
    if found is None:
        notice(pytestconfig, "promtool did NOT run", "not installed: it lints alert rules (Debian: prometheus)")
        pytest.skip("promtool is not installed")
    return found


def checked(promtool: str, *arguments: str, text: str | None = None) -> str:
    """What it complains about; nothing when it takes everything."""
    command = [promtool, "check", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def test_promtool_takes_the_rules(promtool: str, tmp_path: Path) -> None:
    assert not checked(promtool, "rules", str(RULES))
    planted = tmp_path / "planted.yml"
    planted.write_text(RULES.read_text().replace("rate(", "rat(", 1))
    assert checked(promtool, "rules", str(planted))


def test_promtool_finds_nothing_wrong_with_a_scrape(promtool: str, scraped: str) -> None:
    assert not checked(promtool, "metrics", text=scraped)
    assert checked(promtool, "metrics", text=scraped.replace("hubweir_log_syncs_total", "hubweir_log_syncs"))


if __name__ == "__main__":
    PAGE.write_text(remade(PAGE.read_text()))
