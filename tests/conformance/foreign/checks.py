"""What the programs in other languages check of event hubs, in one table, and how a line they printed is judged.

A program prints one JSON object a line: {"check": NAME, "ok": true or false, "detail": TEXT}. It may also print
{"ask": "restart"}: the server is then stopped and started again, and the program goes on after a line on its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the column of the table it counts in, the numbers it shows, and the mark whose numbers they are."""

    feature: str
    numbers: tuple[int, ...] = ()
    mark: str = "eh"


CHECKS = {
    "connects_plain_and_reads_hub_properties": Check("properties", (1, 69, 74)),
    "connects_over_tls": Check("properties"),
    "connects_over_websocket": Check("WebSocket", (3,)),
    "shared_access_signature_instead_of_a_key": Check("SAS", (33,)),
    "wrong_key_is_unauthorised": Check("SAS", (25,)),
    "empty_partition_has_its_properties": Check("properties", (70,)),
    "partition_properties_count_what_was_sent": Check("properties", (70, 82)),
    "single_event_keeps_body_and_properties": Check("send single", (45,)),
    "batch_stays_together_and_in_order": Check("send batch", (39,)),
    "sends_to_the_partition_it_names": Check("send to partition", (51,)),
    "batch_limit_is_a_mebibyte": Check("send batch", (38,)),
    "quarter_mebibyte_event_arrives": Check("send single", (50,)),
    "oversize_is_refused": Check("send single", (46,)),
    "link_is_usable_after_oversize": Check("send single", (46,)),
    "without_key_every_partition_is_used": Check("send single", (51,)),
    "single_and_batch_of_a_key_share_a_partition": Check("send keyed", (44,)),
    "keys_agree_on_2_partitions": Check("send keyed", (43,)),
    "keys_agree_on_4_partitions": Check("send keyed", (43,)),
    "keys_agree_on_8_partitions": Check("send keyed", (43,)),
    "keys_agree_on_32_partitions": Check("send keyed", (43,)),
    "receives_from_earliest": Check("receive from any position", (55,)),
    "receives_from_latest": Check("receive from any position", (55,)),
    "receives_after_offset": Check("receive from any position", (55,)),
    "receives_at_offset": Check("receive from any position", (55,)),
    "receives_after_sequence_number": Check("receive from any position", (55,)),
    "receives_at_sequence_number": Check("receive from any position", (55,)),
    "receives_after_time": Check("receive from any position", (55,)),
    "receives_beyond_the_first_credit": Check("receive from any position", (64,)),
    "missing_hub_is_not_found_by_sender": Check("errors", (37,)),
    "missing_hub_is_not_found_by_receiver": Check("errors", (37,)),
    "missing_hub_is_not_found_by_properties": Check("errors", (73, 74)),
    "missing_consumer_group_is_not_found": Check("errors", (37,)),
    "unknown_partition_is_refused_to_sender": Check("errors", (37,)),
    "unknown_partition_is_refused_to_receiver": Check("errors", (37,)),
    "unknown_partition_has_no_properties": Check("errors", (73,)),
    "resumes_by_sequence_number": Check("checkpoints", (68,)),
    "reader_and_sender_survive_a_server_restart": Check("checkpoints", (21, 67)),
    "higher_owner_level_takes_over": Check("owner level", (62, 63)),
    "lower_owner_level_is_refused": Check("owner level", (62,)),
    "last_enqueued_event_is_tracked": Check("runtime metrics", (59, 60)),
    "idempotent_producer_sends_once": Check("idempotent producer", (54,)),
    # Only a client of the protocol, not of the service, can do these.
    "plain_authorises_without_a_token": Check("SASL", (7,)),
    "plain_with_a_wrong_key_is_refused": Check("SASL", (7,)),
    "put_token_answers_202": Check("SAS", (22,)),
    "drain_ends_the_credit": Check("receive from any position", (20,)),
    "many_sessions_on_one_connection": Check("SASL", (85,)),
    "presettled_event_is_stored": Check("send single", (49,)),
}

WIRE_ONLY = frozenset(
    {
        "plain_authorises_without_a_token",
        "plain_with_a_wrong_key_is_refused",
        "put_token_answers_202",
        "drain_ends_the_credit",
        "many_sessions_on_one_connection",
        "presettled_event_is_stored",
    }
)

# The first test of a client pays for fetching, compiling and running its program; see their own limits.
LIMIT_S = 1200


def parameters_of(client: str, names: Iterable[str], checks: Mapping[str, Check] = CHECKS) -> list[ParameterSet]:
    """The parameters of a client's test, one a check, each with its marks for the table."""
    wanted = set(names)
    return [_parameter(client, name, check) for name, check in checks.items() if name in wanted]


def _parameter(client: str, name: str, check: Check) -> ParameterSet:
    marks = [pytest.mark.conformance, pytest.mark.client(client), pytest.mark.feature(check.feature)]
    return pytest.param(name, marks=[*marks, getattr(pytest.mark, check.mark)(*check.numbers)])
