"""An order of test control whose body comes slowly: what counts is what holds when all of it is there."""

import http.client
import time
from contextlib import closing

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.administration import Administration
from hubweir.client.namespace_control import NamespaceControl
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import running_namespace


def test_a_namespace_that_is_made_while_the_order_comes_in_counts() -> None:
    with running_namespace() as running:
        target = ConnectionString.parse(running.connection_string())
        assert target.key_name is not None and target.key is not None
        token = make_token(f"https://{target.host}/", target.key_name, target.key, int(time.time()) + 300)
        body = b'{"forward_ms": 1000}'
        with closing(http.client.HTTPConnection(target.host, target.tcp_port, timeout=30)) as connection:
            connection.putrequest("POST", "/$testcontrol/clock")
            for name, value in {"Authorization": token, "Content-Length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders(body[:5])
            Administration(target).create_namespace("real", profile="standard")
            connection.send(body[5:])
            answer = connection.getresponse().read().decode()
        assert "another namespace of this service has the profile standard" in answer
        assert NamespaceControl(Administration(target)).state()["clock"]["ahead_ms"] == 0
