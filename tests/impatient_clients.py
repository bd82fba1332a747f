"""The official Python clients look more often for what they wait for, in a run without --all.

They ask again and again whether a link, a token or an answer is there, and sleep for up to a tenth of a second between
two looks; a link that closes waits for a thread that looks once a second whether it is to end. A sender that is opened,
used and closed takes one second so, a receiver two, and some hundred tests have several of each. What the clients say
does not depend on it, so these sleeps are short here. Pauses before a retry, time-outs and the times of empty frames
stay as they are. With --all, and when the page of results is written, the clients wait as they were made; so they do in
crash tests, which count what clients try while a process is away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

LOOK_S = 0.005
AS_MADE = Path(__file__).parent / "crash"
# Methods that sleep between two looks, by module and class, below azure.eventhub and azure.servicebus.
OF_BOTH = {
    "_pyamqp.client": {"AMQPClient": ("_keep_alive", "mgmt_request"), "SendClient": ("_send_message_impl",)},
    "_pyamqp._connection": {"Connection": ("_wait_for_response",)},
    "_pyamqp.session": {"Session": ("_wait_for_response",)},
    "_pyamqp.aio._client_async": {
        "AMQPClientAsync": ("_keep_alive_async", "mgmt_request_async"),
        "SendClientAsync": ("_send_message_impl_async",),
    },
    "_pyamqp.aio._connection_async": {"Connection": ("_wait_for_response",)},
    "_pyamqp.aio._session_async": {"Session": ("_wait_for_response",)},
}
OF_EVENTHUB = {
    "_client_base": {"ClientBase": ("_management_request",), "ConsumerProducerMixin": ("_open",)},
    "aio._client_base_async": {"ClientBaseAsync": ("_management_request_async",), "ConsumerProducerMixin": ("_open",)},
    "aio._eventprocessor.event_processor": {"EventProcessor": ("stop",)},
}
OF_SERVICEBUS = {
    "_servicebus_sender": {"ServiceBusSender": ("_open",)},
    "_servicebus_receiver": {"ServiceBusReceiver": ("_open",)},
    "aio._servicebus_sender_async": {"ServiceBusSender": ("_open",)},
    "aio._servicebus_receiver_async": {"ServiceBusReceiver": ("_open",)},
}
WAITING = {"azure.eventhub": OF_BOTH | OF_EVENTHUB, "azure.servicebus": OF_BOTH | OF_SERVICEBUS}


class ShortSleeps:
    """The module time or asyncio, as a method that waits sees it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def sleep(self, seconds: float, **more: Any) -> Any:
        return self._module.sleep(min(seconds, LOOK_S), **more)


def impatient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose sleeps end after LOOK_S. AssertionError: it has none: its version is a new one."""
    assert isinstance(function, FunctionType) and "sleep" in function.__code__.co_names, f"{function} does not sleep"
    known = function.__globals__
    seen = {name: ShortSleeps(known[name]) for name in ("time", "asyncio") if name in known}
    defaults, closure = function.__defaults__, function.__closure__
    same = FunctionType(function.__code__, known | seen, function.__name__, defaults, closure)
    same.__kwdefaults__ = function.__kwdefaults__
    return same


def waiting_methods() -> Iterator[tuple[type, str]]:
    """Class and name of each, in the modules that are imported."""
    for package, modules in WAITING.items():
        for module, classes in modules.items():
            if (found := sys.modules.get(f"{package}.{module}")) is not None:
                yield from ((getattr(found, name), method) for name, methods in classes.items() for method in methods)


@pytest.fixture(scope="module", autouse=True)
def impatient_clients(request: pytest.FixtureRequest) -> Iterator[None]:
    """Behind the collection, which imports the clients that tests use."""
    with pytest.MonkeyPatch.context() as patch:
        if not are_as_made(request.config, request.path):
            for owner, method in waiting_methods():
                patch.setattr(owner, method, impatient(getattr(owner, method)))
        yield


def are_as_made(config: pytest.Config, file: Path) -> bool:
    """Whether the clients of a file of tests wait as they were made."""
    return bool(config.getoption("--all") or config.getoption("--write-table")) or AS_MADE in file.parents
