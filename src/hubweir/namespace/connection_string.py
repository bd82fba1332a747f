"""Connection strings: `Endpoint=sb://host;SharedAccessKeyName=…;SharedAccessKey=…;EntityPath=hub`.

Pieces are separated by `;`, names are compared without case, and a value may hold `=`. With
`UseDevelopmentEmulator=true` the official clients speak without TLS, on the port in the endpoint or 5672.
("Get an Event Hubs connection string"; the emulator's documentation)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.resource_path import IllegalPath, fold, parse_path
from hubweir.namespace.secret import Secret

AMQPS_PORT, AMQP_PORT = 5671, 5672


@dataclass(frozen=True, slots=True)
class ConnectionString:
    """What a client needs to connect. port: None when the endpoint names none; see `tcp_port`.

    key_name with key, or signature (a ready shared access signature), or neither. repr shows no secret.
    """

    host: str
    port: int | None = None
    key_name: str | None = None
    key: Secret | None = field(default=None, repr=False)
    signature: str | None = field(default=None, repr=False)
    entity_path: str | None = None
    emulator: bool = False

    @property
    def endpoint(self) -> str:
        """`sb://host[:port]`."""
        return f"sb://{self.host}" if self.port is None else f"sb://{self.host}:{self.port}"

    @property
    def tcp_port(self) -> int:
        """The port to connect to."""
        return self.port or (AMQP_PORT if self.emulator else AMQPS_PORT)

    @classmethod
    def parse(cls, text: str) -> ConnectionString:
        """Raises ServiceError ARGUMENT_ERROR, with the name of the piece and never its value."""
        pieces = _pieces(text)
        host, port = _endpoint(pieces.pop("endpoint", None))
        key_name, key = pieces.pop("sharedaccesskeyname", None), pieces.pop("sharedaccesskey", None)
        signature = pieces.pop("sharedaccesssignature", None)
        if (key_name is None) is not (key is None):
            raise _wrong("SharedAccessKeyName and SharedAccessKey belong together")
        if key is not None and signature is not None:
            raise _wrong("it has both a key and a SharedAccessSignature; one is enough")
        return cls(
            host,
            port,
            key_name,
            None if key is None else Secret(key),
            signature,
            pieces.pop("entitypath", None) or None,
            fold(pieces.pop("usedevelopmentemulator", "false")) == "true",
        )

    def format(self) -> str:
        """The text, secrets included."""
        pieces = [("Endpoint", self.endpoint)]
        if self.key_name is not None and self.key is not None:
            pieces += [("SharedAccessKeyName", self.key_name), ("SharedAccessKey", self.key.reveal())]
        if self.signature is not None:
            pieces.append(("SharedAccessSignature", self.signature))
        if self.entity_path is not None:
            pieces.append(("EntityPath", self.entity_path))
        if self.emulator:
            pieces.append(("UseDevelopmentEmulator", "true"))
        return ";".join(f"{name}={value}" for name, value in pieces)


def _pieces(text: str) -> dict[str, str]:
    pieces: dict[str, str] = {}
    for piece in text.strip().split(";"):
        if not piece.strip():
            continue
        name, equals, value = piece.partition("=")
        folded = fold(name.strip())
        if not equals:
            raise _wrong("a piece has no '='; write Name=Value pieces with ';' between them")
        if folded in pieces:
            raise _wrong(f"it has {name.strip()} twice")
        pieces[folded] = value.strip()
    return pieces


def _endpoint(text: str | None) -> tuple[str, int | None]:
    if not text:
        raise _wrong("it has no Endpoint; it starts with Endpoint=sb://host")
    try:
        path = parse_path(text)
    except IllegalPath as error:
        raise _wrong(f"its Endpoint is no URI: {error}") from None
    if path.host is None or path.segments:
        raise _wrong("its Endpoint must be sb://host or sb://host:port")
    port = text.rstrip("/").rpartition("]")[2].rpartition("//")[2].partition(":")[2]
    number = int(port) if port else None
    if number is not None and not 0 < number < 65_536:
        raise _wrong("the port of its Endpoint is not 1 to 65535")
    return path.host, number


def _wrong(why: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"The connection string cannot be read: {why}.")
