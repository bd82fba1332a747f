"""One client for each namespace, hub and process, kept between tasks: a connection costs more than a small batch.

Worker processes of Spark are forked and used again, so the cache is keyed by the process: a client of the parent has a
thread that the child does not have. Nothing is opened when this is imported.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Protocol

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.retry import RetryPolicy

# A worker serves the tasks of several queries; each has one hub. The least used one is closed.
_KEPT = 8
_Key = tuple[int, str, str, str | None]
_clients: OrderedDict[_Key, BlockingEventHubClient] = OrderedDict()
# Within Spark's own patience: a task that fails is tried again up to four times.
_RETRY = RetryPolicy(attempts=6, first_s=0.2, longest_s=5.0)


class HubOptions(Protocol):
    """What names a hub, of a source or of a sink."""

    @property
    def connection_string(self) -> str: ...

    @property
    def event_hub(self) -> str: ...

    @property
    def ca_file(self) -> str | None: ...

    @property
    def operation_timeout_s(self) -> float: ...


def client_of(options: HubOptions) -> BlockingEventHubClient:
    """This process's client of the options' hub. ServiceError comes from its calls, not from here."""
    process = os.getpid()
    for key in [key for key in _clients if key[0] != process]:
        del _clients[key]  # of the process that forked us: its thread is not here, and its socket is not ours to close
    key = (process, options.connection_string, options.event_hub, options.ca_file)
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = BlockingEventHubClient.from_connection_string(
            options.connection_string,
            options.event_hub,
            ca_file=options.ca_file,
            retry=_RETRY,
            timeout_s=min(options.operation_timeout_s, 60.0),
        )
        while len(_clients) > _KEPT:
            _clients.popitem(last=False)[1].close()
    _clients.move_to_end(key)
    return client


def close_clients() -> None:
    """Close this process's clients, such as at the end of a query beside the driver. The next use opens new ones."""
    process = os.getpid()
    for key in [key for key in _clients if key[0] == process]:
        _clients.pop(key).close()
