"""The development key, which everybody knows, is good on this machine only."""

import pytest

from hubweir.config.development_key import check_development_key, is_loopback
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
