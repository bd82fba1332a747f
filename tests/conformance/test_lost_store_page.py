"""docs/partitioned_entities.md says what happens while a store is away: each row has its text here, and its tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hubweir.gateway.amqp.tests import (
    test_fan_in,
    test_partitioned_management,
    test_partitioned_sends,
    test_partitioned_sessions,
)
from hubweir.gateway.http.tests import test_partitioned_entities
from hubweir.gateway.tests import test_failing_catalog, test_partitioned_keeper
from tests.conformance import test_partitioned_administration, test_raw_lost_store, test_servicebus_partitioned

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "partitioned_entities.md").read_text()
HEAD = "| who | while a store is away |\n|---|---|\n"
# Who changes a row looks whether the tests behind it still show what it says.
SHOWN_BY: dict[tuple[str, str], tuple[Callable[..., None], ...]] = {
    ("sends without a key", "go to fragments that are up"): (
        test_partitioned_sends.test_what_has_no_key_goes_to_another_fragment_before_its_sender_hears_of_it,
        test_servicebus_partitioned.test_what_a_lost_store_holds_comes_back_with_it_and_all_else_goes_on,
    ),
    (
        "sends with a key of a lost fragment",
        "are refused with `com.microsoft:server-busy`, which clients wait on and try again",
    ): (
        test_partitioned_sends.test_a_key_whose_fragment_is_away_is_refused_as_busy_and_no_other,
        test_servicebus_partitioned.test_what_a_lost_store_holds_comes_back_with_it_and_all_else_goes_on,
    ),
    (
        "receivers",
        "go on with the other fragments, on the same link, and have those of the store within a second when it is back",
    ): (
        test_raw_lost_store.test_a_receiver_goes_on_with_the_others_and_has_those_of_the_store_on_the_same_link,
        test_fan_in.test_a_fragment_that_was_away_when_the_link_came_is_asked_when_it_is_back,
    ),
    ("a receiver of a session there", "its link ends, or is refused with `com.microsoft:server-busy`"): (
        test_raw_lost_store.test_a_session_of_the_store_ends_its_link_and_is_busy_until_the_store_is_back,
        test_partitioned_sessions.test_a_session_is_refused_while_its_fragment_is_away,
    ),
    ("peeks and lists of sessions", "pass over its fragments"): (
        test_partitioned_management.test_a_peek_passes_over_fragments_that_are_away_unless_all_are,
        test_partitioned_management.test_a_list_of_sessions_passes_over_fragments_that_are_away,
    ),
    ("counts", "are those of the others, and `EntityAvailabilityStatus` is `Limited`"): (
        test_partitioned_administration.test_what_fragments_hold_is_summed_and_one_that_is_away_makes_the_entity_limited,
    ),
    (
        "creating a partitioned entity",
        "is refused with `com.microsoft:store-offline` (503): its fragments would miss that store for good; "
        "nothing of it is left",
    ): (
        test_partitioned_keeper.test_nothing_of_it_is_made_while_a_store_that_it_would_lie_on_is_away,
        test_partitioned_entities.test_while_a_store_is_away_others_take_what_has_one_log_and_nothing_partitioned_is_made,
    ),
    ("creating any other entity", "goes on, on the other stores"): (
        test_partitioned_keeper.test_nothing_of_it_is_made_while_a_store_that_it_would_lie_on_is_away,
        test_partitioned_entities.test_while_a_store_is_away_others_take_what_has_one_log_and_nothing_partitioned_is_made,
    ),
    (
        "creating a subscription of a partitioned topic",
        "is refused; what other stores made of it is removed again",
    ): (
        test_partitioned_keeper.test_a_subscription_that_one_broker_refuses_is_taken_back_everywhere,
        test_partitioned_entities.test_a_subscription_of_a_partitioned_topic_is_refused_and_nothing_of_it_stays_at_other_stores,
    ),
    (
        "a change of settings",
        "is stored; the answer says that a part was not told yet, and the service goes on with it",
    ): (
        test_partitioned_entities.test_an_entity_is_changed_as_far_as_its_stores_are_there_and_the_rest_later,
        test_failing_catalog.test_settings_that_a_partition_did_not_take_are_told_again,
    ),
    ("a deletion", "the entity is served no more, and goes wholly when the store is back"): (
        test_partitioned_entities.test_an_entity_that_cannot_be_removed_wholly_is_served_no_more_and_goes_later,
    ),
}


def test_each_row_of_what_happens_while_a_store_is_away_is_shown_by_a_test() -> None:
    table = PAGE.split(HEAD)[1].partition("\n\n")[0]
    assert re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE) == list(SHOWN_BY)
    assert len(table.splitlines()) == len(SHOWN_BY) and all(SHOWN_BY.values())
