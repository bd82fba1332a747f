from collections.abc import Callable

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.errors import OUT_OF_ORDER_SEQUENCE, ServiceError
from hubweir.testing.running_namespace import RunningNamespace


def test_a_round_without_a_loop(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    text = namespace.connection_string()
    with BlockingEventHubClient.from_connection_string(text, new_hub()) as client:
        sender = client.numbered_sender("0", producer_id=7, round=4)
        assert (sender.epoch, sender.last_number, sender.digest) == (0, 0, 0)
        outcomes = []
        for at in range(5):  # all in flight at once, stored in order
            batch = sender.batch()
            assert batch.try_add(b"%d" % at) and sender.max_message_size == batch.max_size_bytes
            outcomes.append(sender.submit(batch, at + 1, at))
        assert [outcome.result(10) for outcome in outcomes] == [None] * 5
        with pytest.raises(ServiceError) as refused:
            sender.submit_events(batch.events(), 9, 9).result(10)
        assert refused.value.condition.symbol == OUT_OF_ORDER_SEQUENCE.symbol
        again = client.numbered_sender("0", producer_id=7, round=4)
        assert (again.epoch, again.last_number, again.digest) == (1, 5, 4)
        run = client.receiver("0").receive(max_wait_s=5)
        assert run is not None and [bytes(body) for body in run.bodies()][:2] == [b"0", b"1"]
        assert sender.error is None
        sender.close()
        assert sender.error is not None
        again.close()
