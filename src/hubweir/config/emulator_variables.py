"""The environment variables of the official emulators' containers, and the places of their Config.json.

| variable                                                   | here |
|------------------------------------------------------------|------|
| EMULATOR_HTTP_PORT                                         | the HTTP port, in place of 5300, unless `port` is set |
| ACCEPT_EULA, BLOB_SERVER, METADATA_SERVER, SQL_SERVER,     | taken, without effect: there is no licence to accept, |
| MSSQL_SA_PASSWORD, SQL_PASSWORD, SQL_WAIT_INTERVAL,        | and no companion container to keep data in |
| CONFIG_PATH                                                | |

A Config.json that is mounted where the official images read it is read, unless `emulator_config` is set. (Event Hubs
emulator and Service Bus emulator, compose files)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hubweir.config.settings import BadSetting, Settings

HTTP_PORT = "EMULATOR_HTTP_PORT"
COMPANIONS = frozenset(
    (
        "ACCEPT_EULA",
        "BLOB_SERVER",
        "CONFIG_PATH",
        "METADATA_SERVER",
        "MSSQL_SA_PASSWORD",
        "SQL_PASSWORD",
        "SQL_SERVER",
        "SQL_WAIT_INTERVAL",
    )
)
MOUNT_POINTS = tuple(Path(f"/{image}_Emulator/ConfigFiles/Config.json") for image in ("Eventhubs", "ServiceBus"))
OFFICIAL_HTTP_PORT = 5300


def emulator_defaults(environment: Mapping[str, str], mount_points: Iterable[Path] = MOUNT_POINTS) -> dict[str, Any]:
    """Settings by name that hold unless something else sets them. Raises BadSetting for a port that is none."""
    found: dict[str, Any] = {}
    text = environment.get(HTTP_PORT, "").strip()
    if text:
        if not (text.isascii() and text.isdigit() and len(text) < 6):
            raise BadSetting(f"the environment variable {HTTP_PORT} is {text!r}; a port number is needed")
        named = (int(text) if port == OFFICIAL_HTTP_PORT else port for port in Settings().port)
        found["port"] = tuple(dict.fromkeys(named))
    mounted = tuple(str(path) for path in mount_points if path.is_file())
    if mounted:
        found["emulator_config"] = mounted
    return found


def companions_in(environment: Mapping[str, str]) -> list[str]:
    """The variables that are there and have no effect."""
    return sorted(COMPANIONS & set(environment))
