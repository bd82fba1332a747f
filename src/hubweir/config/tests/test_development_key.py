"""The development key, which everybody knows, is good on this machine only."""

from typing import Any

import pytest

from hubweir.config.development_key import check_development_key, has_portal, is_loopback
from hubweir.config.settings import DEVELOPMENT_KEY, BadSetting, Settings


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "broker.test"])
def test_the_development_key_stays_on_this_machine(host: str) -> None:
    with pytest.raises(BadSetting, match="everybody knows"):
        check_development_key(Settings(host=("127.0.0.1", host)), [DEVELOPMENT_KEY])
    check_development_key(Settings(host=(host,), allow_development_key=True), [DEVELOPMENT_KEY])
    # The setting is not what decides: a file, or the data folder, gives the namespaces another key.
    check_development_key(Settings(host=(host,)), ["a key of one's own"])


@pytest.mark.parametrize(
    ("host", "loopback"), [("127.0.0.9", True), ("::1", True), ("localhost", True), ("10.0.0.1", False)]
)
def test_which_hosts_are_this_machine_only(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_further_namespace_with_the_development_key_counts_too() -> None:
    settings = Settings(host=("192.0.2.1",), key="a key of one's own")
    check_development_key(settings, ["another", settings.key])
    with pytest.raises(BadSetting, match="everybody knows"):
        check_development_key(settings, ["another", DEVELOPMENT_KEY])


def test_the_official_emulators_profile_may_use_it_everywhere() -> None:
    check_development_key(Settings(host=("0.0.0.0",), profile="official-emulator"), [DEVELOPMENT_KEY])


@pytest.mark.parametrize(
    ("settings", "key", "is_on"),
    [
        ({}, DEVELOPMENT_KEY, True),
        ({"portal": "off"}, DEVELOPMENT_KEY, False),
        ({"host": ("0.0.0.0",), "allow_development_key": True}, DEVELOPMENT_KEY, False),
        ({"host": ("127.0.0.1", "0.0.0.0"), "profile": "official-emulator"}, DEVELOPMENT_KEY, False),
        ({"host": ("0.0.0.0",), "allow_development_key": True, "portal": "on"}, DEVELOPMENT_KEY, True),
        ({"host": ("0.0.0.0",)}, "a key of one's own", True),
        ({"host": ("0.0.0.0",), "portal": "off"}, "a key of one's own", False),
    ],
)
def test_the_portal_is_off_by_itself_where_strangers_could_use_the_development_key(
    settings: dict[str, Any], key: str, is_on: bool
) -> None:
    assert has_portal(Settings(**settings), [key]) is is_on


def test_another_word_for_the_portal_is_refused() -> None:
    with pytest.raises(BadSetting, match="portal is 'yes'; auto, on and off exist"):
        Settings(portal="yes")
