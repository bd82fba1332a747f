"""What the log of a live service says of clients that show their secrets where they do not belong. No line has one."""

from __future__ import annotations

import logging
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.errors import HubweirError
from hubweir.service.log_output import JsonFormat
from hubweir.service_log import HTTP_REFUSED, TOKEN_REFUSED, Line
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

KEY, SIGNATURE, BODY = "a-key-that-is-secret+=", "a-signature%2Bthat-is%3D", "a body that is nobody's business"
NAME = f"SharedAccessKeyName=Root;SharedAccessKey={KEY}"
TOKEN = f"SharedAccessSignature sr=localhost&sig={SIGNATURE}&se=9999999999&skn=nobody"


def shown_in_wrong_places(namespace: RunningNamespace) -> None:
    """A key as the name of a queue, a signature in a path and in a token that is none, bodies that are refused."""
    text = namespace.connection_string()
    with BlockingQueueClient.from_connection_string(text) as client, suppress(HubweirError):
        client.sender(NAME).send(BODY.encode())
    with BlockingEventHubClient.from_connection_string(text, "orders") as hub, suppress(HubweirError):
        hub.sender().send([BODY.encode() * 100_000])
    with suppress(HubweirError):
        wrong = text.replace("SAS_KEY_VALUE", KEY)
        with BlockingEventHubClient.from_connection_string(wrong, "orders") as hub:
            hub.sender().send([BODY.encode()])
    for path in ("/orders/messages", f"/orders/messages?sig={SIGNATURE}", f"/{TOKEN.replace(' ', '%20')}"):
        with closing(HTTPConnection(namespace.host, namespace.port, timeout=20)) as connection:
            connection.request("POST", path, BODY, {"Authorization": TOKEN})
            assert connection.getresponse().status >= 400


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_no_line_has_a_key_a_signature_or_a_body(caplog: pytest.LogCaptureFixture, level: int) -> None:
    """Attack 88."""
    caplog.set_level(level, "hubweir")
    with running_namespace() as namespace:
        namespace.create_event_hub("orders")
        shown_in_wrong_places(namespace)
    ours = [record for record in caplog.records if record.name.startswith("hubweir.gateway")]
    kinds = {record.msg.kind for record in ours if isinstance(record.msg, Line)}
    assert {HTTP_REFUSED, TOKEN_REFUSED} <= kinds, "control: they were refused, and that was told"
    lines = [JsonFormat(None).format(record) for record in ours]
    assert any("sharedaccesskey=(secret)" in line.lower() for line in lines), (
        "control: the name with the key in it was told"
    )
    for secret in (KEY, KEY.removesuffix("="), SIGNATURE, "a-signature", BODY):
        assert not [line for line in lines if secret.lower() in line.lower()], secret
