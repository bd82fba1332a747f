"""Asking and changing the queues, topics, subscriptions and rules of a namespace, by ATOM over HTTP.

    administration = Administration(ConnectionString.parse(text))
    administration.create(EntityType.QUEUE, "orders", {"LockDuration": "PT30S", "RequiresSession": "true"})

Calls block, each with a connection of its own; they may be made from several threads. What an entity may be given is in
the service's words, as text: see docs/queue.md, docs/topic.md, docs/subscription.md. (Service Bus management over ATOM)
"""

from __future__ import annotations

import builtins
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.atom_documents import EntityInfo, EntityType, entity_of, entries_of, entry_document, error_of
from hubweir.errors import ARGUMENT_ERROR, CONDITION_HEADER, NOT_FOUND, TIMED_OUT, ServiceError
from hubweir.namespace.connection_string import ConnectionString

API_VERSION = "2024-05"
TOKEN_LIFETIME_S = 300
DEFAULT_TIMEOUT_S = 30.0
PAGE_ITEMS = 100
# A page of a hundred rules of the largest size that a rule may have.
ANSWER_LIMIT_BYTES = 64 * 1024 * 1024


class Administration:
    """The management of one namespace. tls: None speaks plain HTTP. timeout_s: for each step of each request.

    Every method raises ServiceError with the service's refusal, or TIMED_OUT when there is no answer.
    """

    def __init__(
        self, target: ConnectionString, *, tls: ssl.SSLContext | None = None, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self._target = target
        self._tls = tls
        self._timeout_s = timeout_s

    def namespace(self) -> EntityInfo:
        """The namespace itself: its name, its tier."""
        return entity_of(self._call("GET", "$namespaceinfo"))

    def get(self, path: str) -> EntityInfo:
        """The queue, topic, subscription (`topic/Subscriptions/name`) or rule (`…/Rules/name`) of that path."""
        return entity_of(self._call("GET", path))

    def status(self) -> dict[str, Any]:
        """How the service is, as docs/http.md has it; UNAUTHORIZED without Manage."""
        found = json.loads(self._call("GET", "$status"))
        assert isinstance(found, dict)
        return found

    def readers(self) -> dict[str, Any]:
        """Who reads the event hubs, as docs/http.md has it; UNAUTHORIZED without Manage."""
        found = json.loads(self._call("GET", "$readers"))
        assert isinstance(found, dict)
        return found

    def namespaces(self) -> builtins.list[dict[str, Any]]:
        """All namespaces of the service, as docs/http.md has them; UNAUTHORIZED without Manage of the default one."""
        found = json.loads(self._call("GET", "$namespaces"))["namespaces"]
        assert isinstance(found, list)
        return found

    def find_namespace(self, name: str) -> dict[str, Any]:
        """One of them; NOT_FOUND."""
        return _document(self._call("GET", f"$namespaces/{name}"))

    def create_namespace(self, name: str, **members: Any) -> dict[str, Any]:
        """Make a namespace, which is served when this comes back; ENTITY_EXISTS. Returns it with its root key.

        members: hostnames, profile, key, throughput_units, maximum_throughput_units, each as docs/http.md has it.
        """
        return _document(self._call("PUT", f"$namespaces/{name}", json.dumps(members).encode()))

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace with all that it holds; NOT_FOUND."""
        self._call("DELETE", f"$namespaces/{name}")

    def restore_namespace(self, name: str, source: str) -> dict[str, Any]:
        """Begin to restore a namespace of a backup; how far it is, as `restore_state`.

        ENTITY_EXISTS, ARGUMENT_ERROR, SERVER_BUSY: nothing was begun.

        source: the backup's folder, a whole path on the machine of the service.
        """
        return _document(self._call("POST", f"$namespaces/{name}/$restore", json.dumps({"source": source}).encode()))

    def restore_state(self, name: str) -> dict[str, Any]:
        """How far the newest restore of that namespace is, as docs/http.md has it; NOT_FOUND."""
        return _document(self._call("GET", f"$namespaces/{name}/$restore"))

    def purge_event_hub(self, name: str) -> dict[str, Any]:
        """Remove all events of an event hub; their numbers are not used again. NOT_ALLOWED when it is captured.

        Returns `partitions`, each with `purged`, how many went, and `first_sequence_number`, that it has now.
        """
        return _document(self.request("POST", f"{name}/$purge", b"", media_type="application/json", entity=name))

    def list(self, kind: EntityType, parent: str = "") -> Iterator[EntityInfo]:
        """All of a kind, in the service's order, asked for page by page. parent: the topic, or the subscription."""
        path, skip = kind.list_path(parent), 0
        while True:
            page = entries_of(self._call("GET", path, query=f"&$skip={skip}&$top={PAGE_ITEMS}"))
            yield from page
            if len(page) < PAGE_ITEMS:
                return
            skip += len(page)

    def fragments(self, path: str) -> Sequence[EntityInfo]:
        """Where the fragments of the queue, topic or subscription of that path are, by number, and what each holds.

        None of a service that does not tell.
        """
        try:
            return entries_of(self._call("GET", f"{path}/$Fragments"))
        except ServiceError as error:
            if error.condition is NOT_FOUND:
                return []
            raise

    def create(self, kind: EntityType, path: str, members: Mapping[str, str], inside: str = "") -> EntityInfo:
        """Make an entity; ENTITY_EXISTS. members: elements of its description, and their texts. inside: XML behind."""
        return entity_of(self._call("PUT", path, entry_document(kind, members, inside)))

    def update(self, kind: EntityType, path: str, changes: Mapping[str, str], inside: str = "") -> EntityInfo:
        """Change what an entity is given; the rest stays, with what others change at the same time. NOT_FOUND.

        changes: elements of its description, and their texts; an empty one is the default. inside: XML behind: of a
        rule, another filter or action.
        """
        return entity_of(self._call("PATCH", path, entry_document(kind, changes, inside)))

    def replace(self, kind: EntityType, path: str, members: Mapping[str, str], inside: str = "") -> EntityInfo:
        """Replace an entity's description as a whole; NOT_FOUND."""
        return entity_of(self._call("PUT", path, entry_document(kind, members, inside), changes=True))

    def delete(self, path: str) -> None:
        """Delete an entity and everything in it; NOT_FOUND."""
        self._call("DELETE", path)

    def _call(self, method: str, path: str, body: bytes = b"", *, query: str = "", changes: bool = False) -> bytes:
        media_type = "application/atom+xml;type=entry;charset=utf-8"
        return self.request(method, path, body, query=query, changes=changes, media_type=media_type)

    def request(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        media_type: str,
        query: str = "",
        changes: bool = False,
        entity: str = "",
    ) -> bytes:
        """One request of any kind; what it was answered. media_type: of the body. entity: whose rules may sign, besides
        those of the namespace.
        """
        target = self._target
        if self._tls is None:
            connection = http.client.HTTPConnection(target.host, target.tcp_port, timeout=self._timeout_s)
        else:
            connection = http.client.HTTPSConnection(
                target.host, target.tcp_port, timeout=self._timeout_s, context=self._tls
            )
        headers = {"Authorization": self._token(entity), "Content-Type": media_type}
        if changes:
            headers["If-Match"] = "*"
        try:
            connection.request(method, f"/{quote(path, safe='/$')}?api-version={API_VERSION}{query}", body, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_LIMIT_BYTES)
        except (OSError, http.client.HTTPException) as error:
            text = f"No answer from {target.host}:{target.tcp_port}: {error or type(error).__name__}."
            raise ServiceError(TIMED_OUT, text) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise error_of(response.status, answer, symbol=response.getheader(CONDITION_HEADER))
        return answer

    def _token(self, entity: str) -> str:
        target = self._target
        if target.signature is not None:
            return target.signature
        if target.key_name is None or target.key is None:
            raise ServiceError(ARGUMENT_ERROR, "The connection string has neither a key nor a SharedAccessSignature.")
        expires_at_s = int(time.time()) + TOKEN_LIFETIME_S
        return make_token(f"https://{target.host}/{entity}", target.key_name, target.key, expires_at_s)


def _document(answer: bytes) -> dict[str, Any]:
    found = json.loads(answer)
    assert isinstance(found, dict)
    return found
