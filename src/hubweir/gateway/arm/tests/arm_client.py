"""Asks a running service for resources of Azure Resource Manager, with signatures of its namespaces."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import closing
from typing import Any

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.administration import Administration
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.running_namespace import RunningNamespace

BASE = "/subscriptions/S/resourceGroups/G/providers"
HUBS, BUS = f"{BASE}/Microsoft.EventHub/namespaces", f"{BASE}/Microsoft.ServiceBus/namespaces"


class ArmClient:
    """By the root rule of the default namespace, unless a request names another token."""

    def __init__(self, running: RunningNamespace) -> None:
        self._target = ConnectionString.parse(running.connection_string())
        self.administration = Administration(self._target)
        assert self._target.key_name is not None and self._target.key is not None
        self.token = self.signed(self._target.key_name, self._target.key)

    def signed(self, rule: str, key: Secret, path: str = "") -> str:
        """A signature of a rule, for what lies under the path."""
        return make_token(f"https://{self._target.host}/{path}", rule, key, int(time.time()) + 300)

    def signed_by(self, namespace: str, **members: str) -> str:
        """Make a namespace, and sign with its root rule."""
        made = self.administration.create_namespace(namespace, **members)
        return self.signed(made["key_name"], Secret(made["key"]))

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = "own") -> tuple[int, Any]:
        """The status of one request, and the JSON of its answer. body: JSON, or bytes as they are."""
        headers = {} if token is None else {"Authorization": self.token if token == "own" else token}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        with closing(http.client.HTTPConnection(self._target.host, self._target.tcp_port, timeout=30)) as connection:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.read()
            return response.status, json.loads(answer) if answer else None

    def refused(
        self, method: str, path: str, body: object = None, *, token: str | None = "own"
    ) -> tuple[int, str, str]:
        """Status, code and message of a refusal."""
        status, answer = self.ask(method, path, body, token=token)
        assert status >= 400, answer
        return status, answer["error"]["code"], answer["error"]["message"]
