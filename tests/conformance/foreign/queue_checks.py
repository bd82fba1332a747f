"""What the programs in other languages check of queues, in one table, and the queues that they find."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from azure.core.pipeline.transport import RequestsTransport
from azure.servicebus.management import EntityStatus, ServiceBusAdministrationClient

from hubweir.testing.server_process import ServerProcess
from tests.conformance.foreign.checks import Check


def _check(feature: str, *numbers: int) -> Check:
    return Check(feature, numbers, "sb")


CHECKS = {
    "connects_over_plain_tcp": _check("connect", 5, 13),
    "connects_over_tls": _check("connect"),
    "connects_over_websocket": _check("WebSocket", 6),
    "wrong_key_is_unauthorised": _check("SAS", 11),
    "single_message_keeps_body_and_properties": _check("properties", 27, 30, 43, 45),
    "message_sent_again_is_a_new_one": _check("properties", 165),
    "batch_is_its_messages_in_order": _check("send batch", 31, 32),
    "batch_limit_is_a_quarter_mebibyte": _check("send batch", 25),
    "oversize_is_refused": _check("send single", 34),
    "received_and_deleted_messages_are_gone": _check("receive and delete", 44),
    "empty_queue_returns_in_time": _check("receive", 63),
    "completed_message_is_gone": _check("settle", 50),
    "abandoned_message_comes_again_with_its_new_properties": _check("settle", 51, 56),
    "deferred_message_is_received_by_number": _check("deferred", 52, 95),
    "dead_lettered_message_says_why": _check("dead letters", 20, 53),
    "expired_message_is_dead_lettered": _check("time to live", 69),
    "lock_is_renewed": _check("locks", 60),
    "lock_that_ended_is_lost": _check("locks", 59),
    "settles_through_another_client": _check("locks", 67),
    "unknown_lock_token_is_not_retried": _check("locks", 94),
    "peek_of_an_empty_queue_is_quick": _check("peek", 89),
    "peek_shows_every_state": _check("peek", 88, 90),
    "scheduled_message_comes_in_time_and_a_cancelled_one_never": _check("schedule", 92, 93),
    "duplicate_is_stored_once": _check("duplicates", 118),
    "named_session_is_received_in_order": _check("sessions", 74, 76, 79, 80),
    "next_session_is_the_oldest": _check("sessions", 75),
    "without_a_free_session_the_wait_is_a_timeout": _check("sessions", 77),
    "held_session_cannot_be_locked": _check("sessions", 78),
    "renewed_session_lock_ends_later": _check("sessions", 82),
    "session_state_is_kept_and_cleared": _check("session state", 83),
    "missing_queue_is_not_found": _check("errors", 23),
    "queue_without_sends_is_disabled": _check("errors", 38),
    "queue_without_receives_is_disabled": _check("errors", 72),
    "wrong_kind_of_receiver_is_refused": _check("errors", 73),
    "client_goes_on_behind_a_restart": _check("errors", 159),
}

# Only the clients of Java and .NET have transactions.
TRANSACTION_CHECKS = {
    "transaction_commits_what_it_sent_and_completed": _check("transactions", 113, 114),
    "transaction_rolls_back_what_it_sent_and_completed": _check("transactions", 113, 114),
    "transaction_sends_messages_and_batches": _check("transactions", 114),
    "transaction_abandons_defers_and_dead_letters": _check("transactions", 114),
    "message_101_of_a_transaction_is_refused": _check("transactions", 115),
    "transaction_that_is_over_is_unknown": _check("transactions", 116),
    "transaction_over_two_queues_moves_a_message": _check("transactions", 114),
    "transaction_sends_to_several_queues": _check("transactions", 114),
    "transaction_schedules_messages": _check("transactions", 114),
    "transaction_keeps_to_one_key_of_a_partitioned_queue": _check("transactions", 130),
}

# Of a partitioned queue.
PARTITION_CHECKS = {"key_or_turn_chooses_the_fragment": _check("send single", 126, 129)}

# All checks that look at partitioned queues, and at nothing else.
OF_PARTITIONED_QUEUES = frozenset({*PARTITION_CHECKS, "transaction_keeps_to_one_key_of_a_partitioned_queue"})

# Only a client of the protocol, not of the service, can do these.
WIRE_CHECKS = {
    "plain_authorises_without_a_token": _check("SASL", 2),
    "plain_with_a_wrong_key_is_refused": _check("SASL"),
    "put_token_answers_202": _check("SAS", 10),
    "end_of_a_session_leaves_the_others": _check("connect", 15),
    "presettled_message_is_stored": _check("send single", 37),
    "message_of_many_frames_is_stored_once_and_comes_in_many": _check("send single", 36),
    "default_receiver_accepts_what_it_is_given": _check("receive", 50),
    "drain_gives_what_there_is_and_ends_the_credit": _check("receive", 61, 62),
    "credit_is_never_exceeded": _check("receive", 65),
    "range_of_deliveries_is_settled_by_one_disposition": _check("settle", 50),
    "released_message_comes_at_once_uncounted": _check("settle", 57),
    "settling_twice_is_lock_lost": _check("settle", 66),
    "described_session_filter_is_answered_described": _check("sessions", 76),
}

# A queue for each check that looks at all of its messages, and what it is made with.
QUEUES: Mapping[str, Mapping[str, object]] = {
    **dict.fromkeys(
        ("plain", "tls", "websocket", "single", "again", "batch", "deleting", "empty", "completing", "abandoning")
        + ("deferring", "dead", "other-client", "peeking", "scheduling", "restarting")
        + ("two-sessions", "presettled", "frames", "defaults", "draining", "crediting", "range", "releasing", "twice")
        + ("committing", "many-sends", "settling", "too-many", "no-transaction", "orders-in", "orders-out")
        + ("requests", "answers", "notices", "scheduling-in"),
        {},
    ),
    "small": {"max_message_size_in_kilobytes": 256},
    "locks": {"lock_duration": timedelta(seconds=5)},
    "rolling-back": {"lock_duration": timedelta(seconds=5)},
    "expiring": {"dead_lettering_on_message_expiration": True},
    "duplicates": {"requires_duplicate_detection": True},
    "spread": {"enable_partitioning": True},
    "one-key": {"enable_partitioning": True},
    "named-session": {"requires_session": True},
    "next-session": {"requires_session": True},
    "held-session": {"requires_session": True},
    "no-session": {"requires_session": True},
    "state": {"requires_session": True},
    "no-sends": {"status": EntityStatus.SEND_DISABLED},
    "no-receives": {"status": EntityStatus.RECEIVE_DISABLED},
}


@contextmanager
def administration(server: ServerProcess, data: Path) -> Iterator[ServiceBusAdministrationClient]:
    """The official administration client of a server. data: the server's folder."""
    transport = RequestsTransport(connection_verify=str(data / "tls" / "ca.pem"))
    string = server.connection_string().replace("UseDevelopmentEmulator=true", "").rstrip(";")
    with ServiceBusAdministrationClient.from_connection_string(string, transport=transport) as client:
        yield client


def create_queues(server: ServerProcess, data: Path, checks: Collection[str] = ()) -> None:
    """Make them by the official administration client: all, or those that the checks of these names look at.

    data: the server's folder. A run on several broker processes does one check or two, of partitioned queues.
    """
    few = bool(checks) and OF_PARTITIONED_QUEUES.issuperset(checks)
    with administration(server, data) as client:
        for name, settings in QUEUES.items():
            if not few or "enable_partitioning" in settings:
                client.create_queue(name, **settings)
