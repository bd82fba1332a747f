"""What a tier's profile limits: the size of a batch in basic, the consumer groups of a hub in standard."""

from __future__ import annotations

import time
from contextlib import closing
from http.client import HTTPConnection

import pytest
from azure.eventhub import EventHubProducerClient

from hubweir.auth.shared_access_signature import make_token
from tests.conformance.conftest import Serve

pytestmark = pytest.mark.conformance


@pytest.mark.eh(38)
def test_batch_of_profile_basic_has_a_quarter_of_the_size(serve: Serve) -> None:
    with serve(profile="basic") as namespace:
        namespace.create_event_hub("small")
        text = namespace.connection_string()
        with EventHubProducerClient.from_connection_string(text, eventhub_name="small") as producer:
            assert producer.create_batch().max_size_in_bytes == 262_144


@pytest.mark.eh(78)
def test_hub_of_profile_standard_has_twenty_groups_and_not_one_more(serve: Serve) -> None:
    with serve(profile="standard") as namespace:
        namespace.create_event_hub("grouped")
        token = make_token("https://localhost/", "RootManageSharedAccessKey", "SAS_KEY_VALUE", int(time.time()) + 60)
        statuses = []
        for number in range(20):
            with closing(HTTPConnection(namespace.host, namespace.port, timeout=30)) as connection:
                connection.request("PUT", f"/grouped/consumergroups/g{number}", b"", {"Authorization": token})
                statuses.append(connection.getresponse().status)
    # $Default is the first of the twenty.
    assert statuses == [201] * 19 + [403]
