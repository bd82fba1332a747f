"""The namespace of a data folder that is meant: named by its name, by a host name or by a connection string of it."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from typing import Any

import click

from hubweir.cli.data_folder import DataFolder
from hubweir.errors import HubweirError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.host_names import bare_host
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold


class NoSuchNamespace(HubweirError):
    """No namespace of the folder is the one that was named, or more than one is."""


def takes_namespace(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options --namespace and --connection-string, either of which chooses one. what: happens to it alone."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--connection-string", help="Name the namespace by a connection string of one of its rules."),
            click.option("--namespace", metavar="NAME", help=f"{what} this namespace alone, by its name or host name."),
        ):
            command = option(command)
        return command

    return decorate


def chosen_namespace(folder: DataFolder, name: str | None, connection_string: str | None) -> str | None:
    """The name of the namespace that is meant; None: nobody names one. Raises NoSuchNamespace, ServiceError."""
    if name is None and connection_string is None:
        return None
    if name is not None and connection_string is not None:
        raise click.UsageError("--namespace and --connection-string name the same: leave one of them out")
    known = folder.namespaces()
    if connection_string is None:
        assert name is not None
        found, said = _of_host(known, name), name
    else:
        target = ConnectionString.parse(connection_string)
        found, said = _of_host(known, target.host) or _of_key(known, target), target.endpoint
    if len(found) != 1:
        names = ", ".join(sorted(each.name for each in known)) or "none"
        many = "several namespaces that are" if found else "no namespace"
        raise NoSuchNamespace(f"{folder.path} has {many} {said}; it has {names}")
    return found[0].name


def _of_host(known: Iterable[NamespaceDescription], host: str) -> list[NamespaceDescription]:
    wanted = bare_host(host)
    return [each for each in known if wanted in _hosts(each)]


def _hosts(namespace: NamespaceDescription) -> set[str]:
    name = fold(namespace.name)
    return {name, f"{name}.localhost", *map(bare_host, namespace.hostnames)}


def _of_key(known: Iterable[NamespaceDescription], target: ConnectionString) -> list[NamespaceDescription]:
    """Those that have the rule and its key: an address leads to no namespace by itself."""
    if target.key_name is None or target.key is None:
        return []
    shown = target.key.reveal().encode()
    return [
        each
        for each in known
        for rule in each.rules
        if fold(rule.name) == fold(target.key_name)
        and any(hmac.compare_digest(key.reveal().encode(), shown) for key in (rule.primary, rule.secondary) if key)
    ]
