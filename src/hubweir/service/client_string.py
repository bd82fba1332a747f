"""The connection string that a client of a service pastes."""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import ROOT_RULE
from hubweir.namespace.connection_string import AMQP_PORT, AMQPS_PORT, ConnectionString
from hubweir.namespace.resource_path import fold
from hubweir.namespace.secret import Secret


def client_string(
    namespaces: Sequence[NamespaceSettings], addresses: Sequence[tuple[str, int]], name: str = "", *, plain: bool
) -> str:
    """With the root rule's key; the port stands there when clients would guess another.

    namespaces: as they are served, the default one first. addresses: host and port of each listening socket.
    name: of the namespace; one that is not served, or "", is the default one's. plain: without TLS, by the emulators'
    flag.
    """
    default = namespaces[0]
    wanted = next((each for each in namespaces if fold(each.name) == fold(name)), default)
    host = addresses[0][0]
    ports = [port for address, port in addresses if address == host]
    usual = AMQP_PORT if plain else AMQPS_PORT
    # Nobody can connect to "every address": a name of this machine stands for it.
    told = "localhost" if host in ("0.0.0.0", "::") else host
    if wanted is not default:
        told = wanted.host_name
    elif not plain and default.hostnames:
        told = default.host_name
    return ConnectionString(
        host=told,
        port=None if usual in ports else ports[0],
        key_name=ROOT_RULE,
        key=Secret(wanted.key),
        emulator=plain,
    ).format()
