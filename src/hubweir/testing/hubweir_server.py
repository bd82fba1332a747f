"""A server for your own tests: `hubweir serve` in a process of its own, on a free port, with namespaces on demand.

    with HubweirServer() as server:
        client = ServiceBusClient.from_connection_string(server.get_connection_string())
        with server.namespace() as namespace:
            namespace.create_queue("orders")

It has the manner of testcontainers: start, get_connection_string, stop. What it keeps lies in a folder that goes with
it, so it is ended at once. When this process is killed, server and folder go all the same (tied_server.py). To delete a
namespace takes longer than to make one: that is done behind the back of the next test, with a bound.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType

from hubweir.client.administration import Administration
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.namespace_on_demand import NamespaceOnDemand
from hubweir.testing.server_process import ServerFailed, ServerProcess

NAME_BYTES = 6
DELETIONS = 8  # that may be under way; a service has 250 namespaces at most


class HubweirServer:
    """See the module's text. arguments: further ones of `hubweir serve`. environment: on top of this process's.

    The namespaces of one server share its clock. ServerFailed: it did not start, or does not run.
    """

    def __init__(self, *, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        self._arguments = arguments
        self._environment = environment
        self._folder = ""
        self._process: ServerProcess | None = None
        self._deleter: ThreadPoolExecutor | None = None
        self._deletions: deque[Future[None]] = deque()

    def __enter__(self) -> HubweirServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> HubweirServer:
        """Start it, and wait until clients may come."""
        if self._process is not None:
            raise ServerFailed("this server runs already")
        self._folder = tempfile.mkdtemp(prefix="hubweir-")
        self._process = ServerProcess(
            f"{self._folder}/data",
            arguments=self._arguments,
            environment=self._environment,
            program=("-m", "hubweir.testing.tied_server", self._folder),
            is_tied=True,
        )
        self._deleter = ThreadPoolExecutor(1, "hubweir-deletions")
        try:
            self._process.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it, and remove what it kept. The second call does nothing."""
        process, self._process = self._process, None
        deleter, self._deleter = self._deleter, None
        if deleter is not None:
            deleter.shutdown(cancel_futures=True)
        self._deletions.clear()
        if process is not None:
            process.kill9()
            shutil.rmtree(self._folder, ignore_errors=True)

    def get_connection_string(self, *, plain: bool = True) -> str:
        """Of its default namespace. plain: without TLS, by the emulators' flag."""
        return self._running.connection_string(plain=plain)

    @contextmanager
    def namespace(self, name: str = "") -> Iterator[NamespaceOnDemand]:
        """A namespace of its own for the length of the block, deleted soon behind it with all that it holds.

        name: one is drawn when it is left out. ServiceError: the service refuses it.
        """
        target = ConnectionString.parse(self.get_connection_string())
        administration = Administration(target)
        made = administration.create_namespace(name or f"test-{secrets.token_hex(NAME_BYTES)}")
        own = replace(target, key_name=made["key_name"], key=Secret(made["key"]))
        try:
            yield NamespaceOnDemand(made["name"], own)
        finally:
            self._delete(administration, made["name"])

    def _delete(self, administration: Administration, name: str) -> None:
        """Have it deleted; what went wrong with an earlier one is raised here."""
        if self._deleter is None:
            return  # the whole server is gone
        self._deletions.append(self._deleter.submit(_delete_namespace, administration, name))
        while len(self._deletions) > DELETIONS or (self._deletions and self._deletions[0].done()):
            self._deletions.popleft().result()

    @property
    def _running(self) -> ServerProcess:
        if self._process is None:
            raise ServerFailed("this server does not run: start it first")
        return self._process


def _delete_namespace(administration: Administration, name: str) -> None:
    """Delete it, unless the test did."""
    try:
        administration.delete_namespace(name)
    except ServiceError as error:
        if error.condition is not NOT_FOUND:
            raise
