"""The user's pip settings, handed on to uv, which does not read them.

Somebody behind a company's index has told pip about it, in a file or in PIP_* variables. Their machine should need
no second set-up, so the same index, certificate, proxy and folders are given to uv as its own variables. A UV_*
variable that is already set wins.
"""

import configparser
import os
import sys
from collections.abc import Mapping
from pathlib import Path

SECTIONS = ("global", "install", "download")  # pip's order: a command's section overrides [global]


def configuration_files(environ: Mapping[str, str]) -> list[Path]:
    """Return where pip would look, least important first: machine, user, environment, PIP_CONFIG_FILE."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []  # pip's way to say: no files at all
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "/")
    if os.name == "nt":
        machine = [Path(environ.get("ALLUSERSPROFILE", r"C:\ProgramData")) / "pip" / "pip.ini"]
        user = [home / "pip" / "pip.ini", Path(environ.get("APPDATA", home)) / "pip" / "pip.ini"]
        own = Path(sys.prefix) / "pip.ini"
    else:
        machine = [Path(folder) / "pip" / "pip.conf" for folder in xdg_folders(environ)] + [Path("/etc/pip.conf")]
        user = [
            home / ".pip" / "pip.conf",
            home / "Library" / "Application Support" / "pip" / "pip.conf",
            Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf",
        ]
        own = Path(sys.prefix) / "pip.conf"
    return [*machine, *user, own, *([Path(named)] if named else [])]


def xdg_folders(environ: Mapping[str, str]) -> list[str]:
    """Return the machine-wide configuration folders, least important first."""
    return list(reversed((environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")))


def read(environ: Mapping[str, str], files: list[Path] | None = None) -> dict[str, str]:
    """Return pip's options by their long names without dashes in front. A file that cannot be read is skipped."""
    found: dict[str, str] = {}
    for path in configuration_files(environ) if files is None else files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip will complain about it in its own words, if it comes to pip
        for section in SECTIONS:
            if parser.has_section(section):
                found.update((name.replace("_", "-"), value) for name, value in parser.items(section))
    for name, value in environ.items():
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE" and value:
            found[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    return found


def for_uv(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make uv do what settings ask of pip; only those that environ does not have."""
    wanted: dict[str, str] = {}
    if "index-url" in settings:
        wanted["UV_DEFAULT_INDEX"] = settings["index-url"].strip()
    if extra := settings.get("extra-index-url", "").split():
        # pip takes the best match of all indexes. Safe to copy here: every requirement carries its hashes.
        wanted |= {"UV_INDEX": " ".join(extra), "UV_INDEX_STRATEGY": "unsafe-best-match"}
    if links := [link for link in settings.get("find-links", "").split() if "://" in link or Path(link).exists()]:
        wanted["UV_FIND_LINKS"] = ",".join(links)
    if "cert" in settings:
        wanted["SSL_CERT_FILE"] = settings["cert"]
    if "client-cert" in settings:
        wanted["SSL_CLIENT_CERT"] = settings["client-cert"]
    if hosts := settings.get("trusted-host", "").split():
        wanted["UV_INSECURE_HOST"] = " ".join(hosts)
    if "proxy" in settings:
        wanted |= {"HTTP_PROXY": settings["proxy"], "HTTPS_PROXY": settings["proxy"]}
    seconds = settings.get("timeout", settings.get("default-timeout", ""))
    if seconds.strip().isdigit():
        wanted["UV_HTTP_TIMEOUT"] = seconds.strip()
    older_names = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
    return {
        name: value
        for name, value in wanted.items()
        if name not in environ and older_names.get(name, name) not in environ
    }


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """Return what uv takes on its command line only."""
    return ["--no-index"] if settings.get("no-index", "").lower() in ("1", "true", "yes", "on") else []
