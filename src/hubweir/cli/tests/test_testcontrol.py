"""hubweir test-control at a live namespace."""

import json
import re
from collections.abc import Callable

from click.testing import CliRunner, Result

from hubweir.cli.main import hubweir
from hubweir.testing.running_namespace import RunningNamespace

Typed = Callable[..., Result]


def test_the_clock_goes_forward_and_is_shown(type_command: Typed) -> None:
    ahead_ms = json.loads(type_command("test-control", "show", "--json").output)["clock"]["ahead_ms"]
    assert ahead_ms == 0
    assert re.fullmatch(
        r"clock: [0-9-]{10} [0-9:]{8} UTC, 90s ahead\nfaults: none\n",
        type_command("test-control", "forward", "90s").output,
    )
    told = json.loads(type_command("test-control", "forward", "30s", "--end-tokens", "--json").output)
    assert told["clock"]["ahead_ms"] == 120_000
    assert "2m ahead" in type_command("test-control", "show").output
    assert type_command("test-control", "forward", "soon").exit_code == 2


def test_faults_are_ordered_shown_and_ended(type_command: Typed) -> None:
    ordered = type_command(
        "test-control", "faults", "--server-busy", "1", "--delay", "0.5", "--delay-by", "2s", "--seed", "7"
    )
    assert ordered.output.splitlines()[1:] == [
        "fault server-busy: rate 1, struck 0",
        "fault delay: rate 0.5, by 2s, struck 0",
        "seed: 7",
    ]
    type_command("queue", "create", "kitchen")
    refused = type_command("message", "send", "kitchen", "two teas")
    assert refused.exit_code == 1 and "a fault that a test ordered" in str(refused.exception)
    shown = type_command("test-control", "show").output.splitlines()
    assert re.fullmatch("fault server-busy: rate 1, struck [1-9]", shown[1])
    assert type_command("test-control", "faults").output.splitlines()[1:] == ["faults: none"]
    assert type_command("message", "send", "kitchen", "two teas").exit_code == 0
    assert type_command("test-control", "faults", "--drop", "2").exit_code == 2


def test_whoever_may_send_and_listen_alone_orders_nothing(type_command: Typed, namespace: RunningNamespace) -> None:
    rule = ("namespace", "authorization-rule")
    type_command(*rule, "create", "worker", "--rights", "Send", "Listen")
    keys = json.loads(type_command(*rule, "keys", "list", "worker", "--json").stdout)
    worker = {"HUBWEIR_CONNECTION_STRING": keys["primaryConnectionString"]}
    for order in (("show",), ("forward", "1h"), ("faults", "--drop", "1"), ("faults",)):
        refused = CliRunner().invoke(hubweir, ("test-control", *order), env=worker)
        assert refused.exit_code == 1 and "Manage,EntityRead claims required" in str(refused.exception), order
    assert namespace.service.process.default.faults is None
