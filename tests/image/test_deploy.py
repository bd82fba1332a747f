"""The unit, the compose file and the manifest in deploy/ fit the service and its image, and give them few rights."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubweir.cli.main import COMMANDS
from hubweir.config.settings import Settings
from hubweir.gateway.http.health import HEALTH_PATHS, READY_PATHS
from hubweir.service.bounded_stop import DISK_WAIT_S
from hubweir.service.supervisor import KILL_WAIT_S
from tests.image.dockerfile import parse

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "hubweir.service"
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
SERVICE, STATEFUL_SET = yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())
IMAGE = parse((ROOT / "Dockerfile").read_text())[-1]
# What a stop may take, also on a disk that hangs.
STOP_S = Settings().stop_grace_ms / 1_000 + DISK_WAIT_S + KILL_WAIT_S
NAMES = {f"HUBWEIR_{line.name.upper()}" for line in fields(Settings)}
PORTS = set(Settings().port)
EXPOSURE_MOST = 2.0  # of 10, as systemd-analyze counts


def unit_of(text: str) -> configparser.ConfigParser:
    """A name that stands twice in a unit is a list; here the last one counts."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(text)
    return parsed


def test_the_unit_starts_reloads_and_stops_the_service() -> None:
    service = unit_of(UNIT.read_text())["Service"]
    program, command, *options = service["ExecStart"].split()
    assert Path(program).name == "hubweir" and command in COMMANDS
    assert [each for each in options if each.startswith("--")] == ["--data"]
    assert options[1] == f"/var/lib/{service['StateDirectory']}"
    assert int(service["TimeoutStopSec"]) > STOP_S
    assert "-HUP" in service["ExecReload"]


def analyzed(*arguments: object) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("NOT RUN: no systemd-analyze is here")
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def complaints(unit: Path) -> list[str]:
    """What systemd has against a unit, but that its program is not installed on this machine."""
    said = analyzed("verify", unit).stderr.splitlines()
    return [line for line in said if unit.name in line and "is not executable" not in line]


def test_systemd_takes_the_unit_and_finds_a_planted_mistake(tmp_path: Path) -> None:
    assert complaints(UNIT) == []
    planted = tmp_path / "planted.service"
    planted.write_text(UNIT.read_text().replace("Restart=on-failure", "Restart=perhaps"))
    assert len(complaints(planted)) == 1


def test_systemd_counts_few_rights_and_more_of_a_careless_unit(tmp_path: Path) -> None:
    def exposure(unit: Path) -> float:
        said = analyzed("security", "--offline=true", unit).stdout
        return float(re.search(r"Overall exposure level for .*: ([\d.]+)", said)[1])  # type: ignore[index]

    careless = tmp_path / "careless.service"
    lines = UNIT.read_text().splitlines()
    careless.write_text("\n".join(each for each in lines if not each.startswith(("Protect", "Restrict", "SystemCall"))))
    assert exposure(UNIT) <= EXPOSURE_MOST < exposure(careless)


def test_the_compose_file_asks_for_a_key_and_opens_ports_to_this_machine_alone() -> None:
    [service] = COMPOSE["services"].values()
    assert set(service["environment"]) <= NAMES
    assert service["environment"]["HUBWEIR_KEY"].startswith("${HUBWEIR_KEY:?")
    opened = [entry.split(":") for entry in service["ports"]]
    assert all(address == "127.0.0.1" and inside == outside for address, outside, inside in opened)
    assert {int(inside) for _, _, inside in opened} == PORTS
    assert [each.split(":")[1] for each in service["volumes"]] == [IMAGE.environment()["HUBWEIR_DATA"]]
    assert int(service["stop_grace_period"].removesuffix("s")) > STOP_S


def broken_rules(stateful_set: dict[str, Any]) -> list[str]:
    """What a pod of ours must not do, or lacks."""
    pod = stateful_set["spec"]["template"]["spec"]
    [container] = pod["containers"]
    found = []
    if stateful_set["spec"]["replicas"] != 1:
        found.append("more than one pod, and each would want the volume for itself")
    as_whom = pod["securityContext"]
    if not as_whom.get("runAsNonRoot") or IMAGE.of("USER") != [f"{as_whom['runAsUser']}:{as_whom['runAsGroup']}"]:
        found.append("another user than the image's")
    rights = container["securityContext"]
    if rights.get("allowPrivilegeEscalation", True) or rights["capabilities"].get("drop") != ["ALL"]:
        found.append("rights that it has no use for")
    if not rights.get("readOnlyRootFilesystem"):
        found.append("its own files can be changed")
    paths = {
        name: container[f"{name}Probe"]["httpGet"]["path"].strip("/") for name in ("startup", "liveness", "readiness")
    }
    if paths["readiness"] not in READY_PATHS or {paths["startup"], paths["liveness"]} - set(HEALTH_PATHS):
        found.append("a probe of the wrong page: an alarm must not kill the service")
    if {each["containerPort"] for each in container["ports"]} != PORTS:
        found.append("other ports than the service's")
    if {each["name"] for each in container["env"]} - NAMES:
        found.append("a variable that is no setting")
    if any("value" in each for each in container["env"] if each["name"] == "HUBWEIR_KEY"):
        found.append("a key in the manifest")
    if pod["terminationGracePeriodSeconds"] <= STOP_S:
        found.append("no time to stop in order")
    if IMAGE.environment()["HUBWEIR_DATA"] not in [each["mountPath"] for each in container["volumeMounts"]]:
        found.append("data on no volume")
    return found


def _in(container: str, **changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(stateful_set: dict[str, Any]) -> None:
        stateful_set["spec"]["template"]["spec"]["containers"][0][container].update(changed)

    return change


@pytest.mark.parametrize(
    "careless",
    [
        lambda made: made["spec"].update(replicas=2),
        lambda made: made["spec"]["template"]["spec"]["securityContext"].update(runAsUser=0),
        lambda made: made["spec"]["template"]["spec"].update(terminationGracePeriodSeconds=1),
        lambda made: made["spec"]["template"]["spec"]["containers"][0]["env"].append(
            {"name": "HUBWEIR_KEY", "value": "k"}
        ),
        _in("securityContext", capabilities={}),
        _in("securityContext", readOnlyRootFilesystem=False),
        _in("livenessProbe", httpGet={"path": "/ready", "port": "http"}),
    ],
)
def test_the_pod_keeps_the_rules_and_a_careless_one_does_not(careless: Callable[[dict[str, Any]], None]) -> None:
    assert broken_rules(STATEFUL_SET) == []
    planted = deepcopy(STATEFUL_SET)
    careless(planted)
    assert len(broken_rules(planted)) == 1


def test_the_service_of_the_cluster_leads_to_the_pods_ports() -> None:
    [container] = STATEFUL_SET["spec"]["template"]["spec"]["containers"]
    named = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert {each["targetPort"]: each["port"] for each in SERVICE["spec"]["ports"]} == named
    assert SERVICE["spec"]["selector"] == STATEFUL_SET["spec"]["template"]["metadata"]["labels"]
