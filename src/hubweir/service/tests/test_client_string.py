"""The connection string that a service gives to clients."""

from __future__ import annotations

from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.namespaces_at_start import namespaces_at_start
from hubweir.config.settings import Settings
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.client_string import client_string


def target(*addresses: tuple[str, int], plain: bool = True) -> ConnectionString:
    namespaces = namespaces_at_start(said_namespaces(Settings())).namespaces
    return ConnectionString.parse(client_string(namespaces, addresses, plain=plain))


def test_connection_strings_name_the_port_only_where_clients_would_guess_wrong() -> None:
    usual = (("127.0.0.1", 5671), ("127.0.0.1", 5672))
    assert target(*usual).port is None and target(*usual, plain=False).port is None
    other = (("127.0.0.1", 7000), ("127.0.0.2", 5672))
    assert target(*other).port == 7000 and target(*other, plain=False).port == 7000
    assert target(("0.0.0.0", 5671)).host == "localhost"
