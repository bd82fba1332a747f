"""The environment and the mount points of the official images."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.config.emulator_variables import HTTP_PORT, MOUNT_POINTS, companions_in, emulator_defaults
from hubweir.config.settings import BadSetting, Settings
from hubweir.config.sources import load_settings


def test_the_http_port_takes_the_place_of_5300_and_of_nothing_that_was_set() -> None:
    assert load_settings({}, {HTTP_PORT: "5310"}).port == (5671, 5672, 5310)
    assert load_settings({}, {HTTP_PORT: " "}).port == Settings().port
    assert load_settings({}, {HTTP_PORT: "5672"}).port == (5671, 5672)
    assert load_settings({}, {HTTP_PORT: "5310", "HUBWEIR_PORT": "7000"}).port == (7000,)
    assert load_settings({"port": (7001,)}, {HTTP_PORT: "5310"}).port == (7001,)


@pytest.mark.parametrize("text", ["http", "-1", "5_300", "٥", "65536", "123456"])
def test_a_port_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        load_settings({}, {HTTP_PORT: text})


def test_a_mounted_file_is_read_when_nothing_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    assert emulator_defaults({}, (file,)) == {}
    file.write_text("{}")
    assert emulator_defaults({}, (file, tmp_path / "absent")) == {"emulator_config": (str(file),)}
    assert load_settings({}, {}, mount_points=(file,)).emulator_config == (str(file),)
    assert load_settings({"emulator_config": ("mine",)}, {}, mount_points=(file,)).emulator_config == ("mine",)
    assert load_settings({}, {"HUBWEIR_EMULATOR_CONFIG": "mine"}, mount_points=(file,)).emulator_config == ("mine",)


def test_the_mount_points_are_those_of_the_official_images() -> None:
    assert [str(path) for path in MOUNT_POINTS] == [
        "/Eventhubs_Emulator/ConfigFiles/Config.json",
        "/ServiceBus_Emulator/ConfigFiles/Config.json",
    ]


def test_companions_are_told_apart_from_everything_else() -> None:
    assert companions_in({"ACCEPT_EULA": "Y", "PATH": "", "SQL_WAIT_INTERVAL": "15", HTTP_PORT: "1"}) == [
        "ACCEPT_EULA",
        "SQL_WAIT_INTERVAL",
    ]
