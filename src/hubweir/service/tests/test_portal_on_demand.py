"""The portal in a running service: loaded when it is first asked for, served by every broker process alike."""

import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from urllib.parse import urlencode

import pytest

from hubweir.amqp.security.protocol_header import AMQP_HEADER
from hubweir.amqp.transport.performatives import Open
from hubweir.env import Lane
from hubweir.service.supervisor import Supervisor
from hubweir.testing.frames import frame
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

LOADED = """
import http.client, sys
from hubweir.testing.running_namespace import running_namespace
with running_namespace() as namespace:
    def status(path):
        connection = http.client.HTTPConnection(namespace.host, namespace.port, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse().status
        connection.close()
        return answer
    assert status("/health") == 200
    before = [name for name in sys.modules if name.startswith(("hubweir.portal", "jinja2", "markupsafe"))]
    assert status("/portal/sign-in") == 200
    after = "hubweir.portal.portal" in sys.modules
    print(before, after)
"""


def ask(namespace: RunningNamespace, method: str, path: str, body: str = "", cookie: str = "") -> tuple[int, str, str]:
    """Status, cookie and body of an answer, on a connection of its own."""
    connection = http.client.HTTPConnection(namespace.host, namespace.port, timeout=30)
    headers = {"cookie": cookie} | ({"content-type": "application/x-www-form-urlencoded"} if body else {})
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, (answer.getheader("set-cookie") or "").partition(";")[0], answer.read().decode()
    finally:
        connection.close()


def test_nothing_of_it_is_imported_before_somebody_asks() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "[] True", done.stderr


def test_nothing_that_the_service_does_by_itself_is_waited_for_by_whoever_asks_first() -> None:
    """Snapshots, rolls and closing of logs may wait for a slow disk; its threads are all busy with them here."""
    with running_namespace() as namespace:
        over = threading.Event()

        async def keep_busy() -> None:
            for _ in range(100):
                namespace.parts.process.env.offload(Lane.MAINTENANCE, over.wait, lambda _: None)

        try:
            namespace.run(keep_busy())
            assert ask(namespace, "GET", "/portal/sign-in")[0] == 200
        finally:
            over.set()


@pytest.mark.skipif(sys.platform != "linux", reason="broker processes are for Linux")
def test_all_broker_processes_load_it_when_one_was_asked_for_it() -> None:
    """So that nobody who signed in waits again wherever the next connection leads."""
    with running_namespace(brokers=3) as namespace:
        assert isinstance(namespace.parts, Supervisor)
        processes = namespace.parts.processes
        assert ask(namespace, "GET", "/health")[0] == 200
        assert not any(process.has_portal for process in processes), "nobody looked at it"
        assert ask(namespace, "GET", "/portal/sign-in")[0] == 200
        deadline = time.monotonic() + 60
        while not all(process.has_portal for process in processes):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_it_may_be_off() -> None:
    with running_namespace(portal="off") as namespace:
        assert ask(namespace, "GET", "/portal")[0] == 401  # as of an entity of that name, without a token


@pytest.mark.skipif(sys.platform != "linux", reason="broker processes are for Linux")
def test_a_session_is_good_at_every_broker_process() -> None:
    """Connections go to whichever process takes them: of many each meets its share."""
    with running_namespace(brokers=2) as namespace:
        form = urlencode({"rule": "RootManageSharedAccessKey", "secret": "SAS_KEY_VALUE"})
        status, cookie, _ = ask(namespace, "POST", "/portal/sign-in", form)
        assert status == 303
        pages = [ask(namespace, "GET", "/portal/create-event-hub", cookie=cookie) for _ in range(24)]
        assert {status for status, _, _ in pages} == {200}
        nonce = pages[0][2].partition('name="csrf" value="')[2].partition('"')[0]
        for number in range(8):  # changes go to the keeper, from whichever process
            fields = {"name": f"hub-{number}", "partition_count": "1", "retention": "1 day", "durability": "durable"}
            body = urlencode({**fields, "status": "Active", "csrf": nonce})
            assert ask(namespace, "POST", "/portal/create-event-hub", body, cookie)[0] == 303
            settings = urlencode({**fields, "retention": "2 days", "status": "Active", "csrf": nonce})
            assert ask(namespace, "POST", f"/portal/settings/hub-{number}", settings, cookie)[0] == 303
        assert "2 days" in ask(namespace, "GET", "/portal/event-hubs", cookie=cookie)[2]


@pytest.mark.skipif(sys.platform != "linux", reason="broker processes are for Linux")
def test_connections_of_all_broker_processes_are_listed_at_each() -> None:
    with running_namespace(brokers=2) as namespace, ExitStack() as stack:
        own = set()
        for _ in range(12):
            client = stack.enter_context(socket.create_connection((namespace.host, namespace.port), 30))
            client.sendall(AMQP_HEADER + frame(Open(container_id="a test"), channel=0))
            assert client.recv(8) == AMQP_HEADER, "the service has it"
            own.add("{}:{}".format(*client.getsockname()))
        form = urlencode({"rule": "RootManageSharedAccessKey", "secret": "SAS_KEY_VALUE"})
        cookie = ask(namespace, "POST", "/portal/sign-in", form)[1]
        for _ in range(12):
            page = ask(namespace, "GET", "/portal/connections", cookie=cookie)[2]
            assert own <= set(re.findall(r'<th scope="row">([^<]+)</th>', page))
