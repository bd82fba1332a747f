"""What a broker process is told: all of it comes back, keys stay out of the digest, stores are shared out."""

from dataclasses import replace
from pathlib import Path

import pytest

from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults, StandingOrders
from hubweir.cli.given_settings import config_files
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import Settings
from hubweir.errors import HubweirError
from hubweir.service.process_start import ProcessStart, own_stores

START = ProcessStart(
    settings=Settings(brokers=3, key="secret", port=(0,)),
    namespaces=(
        NamespaceSettings(name="a", key="secret", is_default=True, hostnames=("a.example", "b.example")),
        NamespaceSettings(name="b", key="other", throughput_units=4),
    ),
    index=1,
    process_id=4711,
    supervisor=815,
    stores=7,
    addresses=(("127.0.0.1", 5671), ("::1", 5671)),
    named=(0, 4),
    orders=StandingOrders(3, 60_000, 1_000, {"a": OrderedFaults(2, FaultRates(drop=0.5, seed=7))}),
)


def test_the_document_says_all_of_it() -> None:
    assert ProcessStart.decode(START.encode()) == START


def test_what_a_config_file_wants_is_left_to_the_supervisor(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text('{"UserConfig": {"NamespaceConfig": [{"Type": "EventHub", "Name": "a", "Entities": []}]}}')
    settings = replace(START.settings, emulator_config=(str(file),))
    [entities] = config_files(settings).namespaces
    wanted = replace(START.namespaces[0], entities=entities)
    assert ProcessStart.decode(replace(START, namespaces=(wanted,)).encode()).namespaces == START.namespaces[:1]


@pytest.mark.parametrize("document", [b"", b"{}", START.encode()[:-1], b"[1]"])
def test_anything_else_on_standard_input_is_refused_with_the_way_to_start_it(document: bytes) -> None:
    with pytest.raises(HubweirError, match="hubweir serve --brokers N"):
        ProcessStart.decode(document)


def test_processes_of_one_start_have_one_digest_whatever_their_keys_and_ports() -> None:
    same = replace(
        START,
        settings=replace(START.settings, key="another"),
        namespaces=tuple(replace(each, key="x", stored_name="a") for each in START.namespaces),
        index=2,
        process_id=9,
        supervisor=10,
        addresses=(),
        named=(),
    )
    assert same.digest == START.digest
    assert "secret" not in START.digest


@pytest.mark.parametrize(
    "change",
    [
        {"settings": replace(START.settings, brokers=2)},
        {"settings": replace(START.settings, port=(5671,))},
        {"settings": replace(START.settings, log_tail_bytes=START.settings.log_tail_bytes * 2)},
        {"namespaces": START.namespaces[:1]},
        {"namespaces": (replace(START.namespaces[0], hostnames=()), START.namespaces[1])},
        {"namespaces": (replace(START.namespaces[0], profile="standard"), START.namespaces[1])},
        {"stores": 8},
    ],
)
def test_another_start_has_another_digest(change: dict[str, object]) -> None:
    assert replace(START, **change).digest != START.digest


def test_every_store_has_one_process() -> None:
    shares = [list(own_stores(index, processes=3, stores=7)) for index in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]
    assert list(START.own_stores) == shares[1]
