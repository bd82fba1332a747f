"""Every setting of a service: name, unit, default, range, meaning. One line of a table is one field.

The tables are classes by subject, and who works on one subject is given, and knows, that class alone. `Settings` is all
of them in one flat value, checked together, so it is handed down as it is, and nothing is copied. What floors below
keep, too, stands in limits.py in the same way.

A setting has the same name everywhere: `max_message_size_bytes` here and in a TOML file,
`HUBWEIR_MAX_MESSAGE_SIZE_BYTES` in the environment; flags of `hubweir serve` set the common ones. sources.py says who
wins. Units end the names.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from hubweir.errors import HubweirError
from hubweir.limits import (
    RAISED_UNITS_LIMIT,
    CaptureLimits,
    GatewayLimits,
    PortLimits,
    StoreLimits,
    UnitsLimits,
    setting,
)
from hubweir.namespace.event_hub_description import PARTITIONS_LIMIT, RAISED_PARTITIONS_LIMIT
from hubweir.namespace.tiers import DEVELOPMENT, PROFILES

# Known to everyone who reads the documentation of the official emulators; good on a loopback address only.
DEVELOPMENT_KEY = "SAS_KEY_VALUE"
ROOT_RULE = "RootManageSharedAccessKey"
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")


class BadSetting(HubweirError):
    """A setting that cannot be: which, from where, what it may be."""


@dataclass(frozen=True, kw_only=True)
class CheckedSettings:
    """What the tables of this page have in common: a value is checked when it is made.

    BadSetting names the setting that cannot be. A table with rules of its own adds them in its __post_init__.
    """

    def __post_init__(self) -> None:
        for line in dataclasses.fields(self):
            value = getattr(self, line.name)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, int) and not isinstance(number, bool):
                    _check_range(line.name, number, line.metadata["least"], line.metadata["most"])


@dataclass(frozen=True, kw_only=True)
class ProcessSettings(CheckedSettings):
    """Where a service keeps what it has, and how many processes, stores and threads work on it."""

    data: str = setting("hubweir-data", "folder of everything the service keeps; made when it is not there")
    stores: int = setting(
        1,
        "messaging stores, each a folder with a broker of its own; more that the data folder has are served, too",
        least=1,
        most=64,
    )
    brokers: int = setting(
        1, "broker processes, each with one messaging store at least; above 1 on Linux alone", least=1, most=64
    )
    broker_seam: str = setting(
        "call", "how gateway and broker talk in one process: call, or socket (as bytes, as two processes would)"
    )
    loop: str = setting("auto", "event loop: auto (uvloop where it is installed), uvloop or asyncio")
    offload_threads: int = setting(12, "threads for writes and syncs, and as many for cold reads", least=8, most=16)
    stop_grace_ms: int = setting(5_000, "time to settle what was received when the service stops", least=0, most=60_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loop not in ("auto", "uvloop", "asyncio"):
            raise BadSetting(f"loop is {self.loop!r}; auto, uvloop and asyncio exist")
        if self.broker_seam not in ("call", "socket"):
            raise BadSetting(f"broker_seam is {self.broker_seam!r}; call and socket exist")


@dataclass(frozen=True, kw_only=True)
class DoorSettings(CheckedSettings, PortLimits):
    """Where peers come in, and what is shown to whom there."""

    host: tuple[str, ...] = setting(("127.0.0.1",), "addresses to listen on")
    port: tuple[int, ...] = setting(
        (5671, 5672, 5300),
        "ports to listen on, on every address; each speaks AMQP and HTTP, plain and over TLS; 0 takes a free one",
        least=0, most=65_535,
    )  # fmt: skip
    allow_development_key: bool = setting(
        False, "listen off loopback although the key is the development key, which everybody knows"
    )
    plain_without_tls: bool = setting(
        False,
        "SASL PLAIN, which shows a key, is taken from other machines without TLS too; always so in official-emulator",
    )
    portal: str = setting(
        "auto",
        "pages for people at /portal: on, off, or auto, which is on unless other machines could sign in with the "
        "development key",
    )
    metrics: str = setting(
        "auto",
        "who may read /metrics: off (there is none), open (who reaches a port), token (who may manage); auto is open "
        "where every host is a loopback address, else token",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("host", "port"):
            if not getattr(self, name):
                raise BadSetting(f"{name} is empty; give at least one")
        if self.portal not in ("auto", "on", "off"):
            raise BadSetting(f"portal is {self.portal!r}; auto, on and off exist")
        if self.metrics not in ("auto", "off", "open", "token"):
            raise BadSetting(f"metrics is {self.metrics!r}; auto, off, open and token exist")


@dataclass(frozen=True, kw_only=True)
class TlsSettings(CheckedSettings):
    """Files of TLS. They are read again while the service runs."""

    tls_cert: str = setting("", "PEM file of the certificate and its chain; empty: a development certificate is made")
    tls_key: str = setting("", "PEM file of the certificate's key")
    tls_client_ca: str = setting(
        "", "PEM file of the CAs whose client certificates SASL EXTERNAL takes; empty: clients are asked for none"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.tls_cert) != bool(self.tls_key):
            raise BadSetting(
                "tls_cert and tls_key belong together; give both, or neither for a development certificate"
            )


@dataclass(frozen=True, kw_only=True)
class TokenSettings(CheckedSettings):
    """The one issuer whose JSON Web Tokens are taken, besides shared access signatures."""

    jwt_issuer: str = setting("", "issuer (iss) whose JSON Web Tokens are taken besides signatures; empty: nobody's")
    jwt_audience: str = setting("https://eventhubs.azure.net", "audience (aud) that JSON Web Tokens must be for")
    jwt_keys_file: str = setting("", "file of the issuer's public keys: a JWK set, or PEM")
    jwt_keys_check_ms: int = setting(
        2_000, "time between two looks at the keys file; a new one counts at once", least=100, most=3_600_000
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.jwt_issuer) != bool(self.jwt_keys_file) or (self.jwt_issuer and not self.jwt_audience):
            raise BadSetting(
                "jwt_issuer, jwt_audience and jwt_keys_file belong together; without jwt_issuer and jwt_keys_file "
                "only shared access signatures are taken"
            )


@dataclass(frozen=True, kw_only=True)
class CatalogSettings(CheckedSettings):
    """What a start says of namespaces: their catalogs keep it, and it holds for a later start that says nothing."""

    namespace: str = setting("hubweir", "name of the default namespace, for connections that name none")
    hostname: tuple[str, ...] = setting(
        (), "host names of the default namespace, for clients, tokens and the development certificate"
    )
    further_namespace: tuple[str, ...] = setting(
        (),
        "namespaces to add or change, each NAME or NAME=HOST+HOST: host names that lead there, besides NAME.localhost",
    )
    key: str = setting(
        DEVELOPMENT_KEY,
        f"primary key of the rule {ROOT_RULE} of every namespace that no Config.json gives one",
        secret=True,
    )
    profile: str = setting(
        "development", "whose quotas hold: development (none), official-emulator, basic, standard or premium"
    )
    throughput_units: int = setting(
        0, "throughput units of the default namespace; 0: off. Changed while it runs: hubweir namespace update",
        least=0, most=RAISED_UNITS_LIMIT,
    )  # fmt: skip
    maximum_throughput_units: int = setting(
        0, "auto-inflate adds throughput units up to this many; 0: it adds none", least=0, most=RAISED_UNITS_LIMIT
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.profile not in PROFILES:
            raise BadSetting(f"profile is {self.profile!r}; {', '.join(PROFILES)} exist")
        if not self.key:
            raise BadSetting(f"key is empty; give the primary key of {ROOT_RULE}, or none for the development key")
        if 0 < self.maximum_throughput_units < self.throughput_units:
            raise BadSetting(
                f"maximum_throughput_units is {self.maximum_throughput_units}, below throughput_units, which is "
                f"{self.throughput_units}"
            )


@dataclass(frozen=True, kw_only=True)
class EmulatorSettings(CheckedSettings):
    """Config.json files of the official emulators, of which a start makes entities."""

    emulator_config: tuple[str, ...] = setting(
        (), "Config.json files of the official emulators, or folders of them, whose entities are made at start"
    )
    emulator_config_text: str = setting(
        "", "a Config.json itself, beside the files that emulator_config names: for a variable of a container",
        secret=True,
    )  # fmt: skip
    strict_config: bool = setting(False, "a member of a Config.json that nothing reads is an error, not a warning")


@dataclass(frozen=True, kw_only=True)
class EntitySettings(CheckedSettings):
    """What entities may be and do beyond what the profile says."""

    allow_more_partitions: bool = setting(
        False,
        f"event hubs may be made with up to {RAISED_PARTITIONS_LIMIT} partitions, not {PARTITIONS_LIMIT}, "
        "in every profile",
    )
    lone_receives: bool = setting(
        False,
        "a receive over HTTP from a partitioned queue or topic asks one fragment alone, and may find nothing where "
        "others have messages, as in the cloud; a test switch, with the profile development",
    )

    @property
    def partitions_limit(self) -> int:
        """Of an event hub that is made from now on."""
        return RAISED_PARTITIONS_LIMIT if self.allow_more_partitions else PARTITIONS_LIMIT


@dataclass(frozen=True, kw_only=True)
class OutputSettings(CheckedSettings):
    """What a service tells while it runs: its log, on standard error, and spans."""

    log_level: str = setting("info", "lines of the log from this level on: debug, info, warning or error")
    log_format: str = setting("text", "form of the log's lines: text for people, or json for programs")
    traces: str = setting(
        "",
        "URL of an OpenTelemetry collector that gets spans of what clients trace, such as "
        "http://127.0.0.1:4318/v1/traces; empty: nothing is traced",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log_level not in LOG_LEVELS:
            raise BadSetting(f"log_level is {self.log_level!r}; {', '.join(LOG_LEVELS)} exist")
        if self.log_format not in LOG_FORMATS:
            raise BadSetting(f"log_format is {self.log_format!r}; {' and '.join(LOG_FORMATS)} exist")


@dataclass(frozen=True, kw_only=True)
class CaptureSettings(CheckedSettings, CaptureLimits):
    """Where captured files go."""

    capture_folder: str = setting("", "folder of captured files; empty: the folder capture below the data folder")
    capture_storage: str = setting(
        "", "connection string of the Azure storage account that captured files may go to", secret=True
    )


@dataclass(frozen=True, kw_only=True)
class Settings(
    ProcessSettings,
    DoorSettings,
    TlsSettings,
    TokenSettings,
    CatalogSettings,
    EmulatorSettings,
    EntitySettings,
    OutputSettings,
    CaptureSettings,
    GatewayLimits,
    StoreLimits,
    UnitsLimits,
):
    """All settings of one service; the tables stand in the order of the page."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lone_receives and self.profile != DEVELOPMENT.name:
            raise BadSetting(
                f"lone_receives is a switch for tests, and the profile is {self.profile}; leave it out, or take the "
                f"profile {DEVELOPMENT.name}"
            )


def names_of(*tables: type[CheckedSettings]) -> frozenset[str]:
    """The names of the settings in these tables."""
    return frozenset(line.name for table in tables for line in dataclasses.fields(table))


# In the order of the page and of the flags: table by table as above, then what floors below keep.
_OWN = [name for table in Settings.__bases__ if issubclass(table, CheckedSettings) for name in table.__annotations__]
_PLACES = {name: place for place, name in enumerate(_OWN)}
LINES = tuple(sorted(dataclasses.fields(Settings), key=lambda line: _PLACES.get(line.name, len(_PLACES))))


def _check_range(name: str, value: int, least: int | None, most: int | None) -> None:
    if (least is not None and value < least) or (most is not None and value > most):
        raise BadSetting(f"{name} is {value}; {least} to {most} are allowed")


def change(settings: Settings, **changes: Any) -> Settings:
    """The same settings with some of them changed, checked again."""
    return dataclasses.replace(settings, **changes)
