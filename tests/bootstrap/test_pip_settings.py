"""What pip was told reaches uv; what uv was told stays."""

from pathlib import Path

import pytest

from bootstrap import pip_settings


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_later_file_and_then_a_variable_win(tmp_path: Path) -> None:
    machine = written(tmp_path / "a", "[global]\nindex-url = https://machine/simple\ncert = /machine.pem\n")
    user = written(tmp_path / "b", "[global]\nindex_url = https://user/simple\n[install]\nno-index = true\n")
    assert pip_settings.read({"PIP_CERT": "/mine.pem"}, [machine, user]) == {
        "index-url": "https://user/simple",
        "cert": "/mine.pem",
        "no-index": "true",
    }


def test_a_broken_or_missing_file_is_skipped(tmp_path: Path) -> None:
    broken = written(tmp_path / "a", "index-url = without a section\n")
    assert pip_settings.read({}, [broken, tmp_path / "missing"]) == {}


def test_pip_config_file_is_read_last_and_the_null_device_means_no_files(tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(tmp_path / "named")}
    files = pip_settings.configuration_files(own)
    assert files[-1] == tmp_path / "named"
    assert tmp_path / ".config" / "pip" / "pip.conf" in files
    assert pip_settings.configuration_files({"PIP_CONFIG_FILE": "/dev/null"}) == []


def test_everything_that_decides_where_packages_come_from_is_carried_over(tmp_path: Path) -> None:
    settings = {
        "index-url": "https://index.example/simple",
        "extra-index-url": "\nhttps://a.example/simple\nhttps://b.example/simple",
        "find-links": f"{tmp_path} /no/such/folder https://files.example/",
        "cert": "/ca.pem",
        "client-cert": "/me.pem",
        "trusted-host": "one.example two.example:8443",
        "proxy": "http://proxy.example:3128",
        "timeout": "60",
    }
    assert pip_settings.for_uv(settings, {}) == {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{tmp_path},https://files.example/",
        "SSL_CERT_FILE": "/ca.pem",
        "SSL_CLIENT_CERT": "/me.pem",
        "UV_INSECURE_HOST": "one.example two.example:8443",
        "HTTP_PROXY": "http://proxy.example:3128",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "UV_HTTP_TIMEOUT": "60",
    }


@pytest.mark.parametrize("own", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_what_uv_was_told_itself_wins(own: str) -> None:
    assert pip_settings.for_uv({"index-url": "https://pip/simple"}, {own: "https://uv/simple"}) == {}


@pytest.mark.parametrize(("value", "options"), [("1", ["--no-index"]), ("true", ["--no-index"]), ("0", []), ("", [])])
def test_no_index_becomes_an_option(value: str, options: list[str]) -> None:
    assert pip_settings.uv_options({"no-index": value}) == options
