"""deadlines.py: each part of a connection's life has its time, counted from the right moment."""

from __future__ import annotations

import pytest

from hubweir.amqp.deadlines import Deadlines
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.limits import ConnectionLimits

SETTINGS = EndpointSettings(
    "c",
    header_deadline_ms=1,
    sasl_deadline_ms=20,
    limits=ConnectionLimits(unauthorized_connection_ms=300),
    linkless_timeout_ms=4_000,
    close_deadline_ms=50_000,
)


def begun(role: Role = Role.SERVER) -> Deadlines:
    return Deadlines(role, SETTINGS, 1_000_000)


def test_the_header_and_the_open_are_waited_for_from_the_start() -> None:
    deadlines = begun()
    assert not deadlines.is_opened
    assert deadlines.next_ms(has_begun=False) == 1_000_001
    deadlines.notice(0, False, 1_000_010)
    assert deadlines.next_ms(has_begun=True) == 1_000_020


def test_the_first_link_is_waited_for_from_the_open() -> None:
    deadlines = begun()
    deadlines.opened(1_000_015)
    deadlines.notice(0, False, 1_000_200)
    assert deadlines.is_opened and deadlines.next_ms(has_begun=True) == 1_000_315


def test_with_a_link_it_may_last_and_without_one_it_ends_a_time_after_the_last() -> None:
    deadlines = begun()
    deadlines.opened(1_000_015)
    deadlines.notice(1, False, 1_000_016)
    assert deadlines.next_ms(has_begun=True) is None
    deadlines.notice(0, False, 2_000_000)
    deadlines.notice(0, False, 2_000_500)  # the moment of the first notice counts
    assert deadlines.next_ms(has_begun=True) == 2_004_000
    deadlines.notice(2, False, 2_001_000)
    assert deadlines.next_ms(has_begun=True) is None
    deadlines.notice(0, False, 3_000_000)
    assert deadlines.next_ms(has_begun=True) == 3_004_000


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("links", [0, 1])
def test_once_we_close_only_the_answer_is_waited_for(role: Role, links: int) -> None:
    deadlines = begun(role)
    deadlines.opened(1_000_015)
    deadlines.notice(links, True, 2_000_000)
    deadlines.notice(links, True, 2_000_900)
    assert deadlines.next_ms(has_begun=True) == 2_050_000


def test_a_client_waits_for_nothing_else() -> None:
    deadlines = begun(Role.CLIENT)
    assert deadlines.next_ms(has_begun=False) is None
    deadlines.opened(1_000_015)
    deadlines.notice(1, False, 1_000_016)
    deadlines.notice(0, False, 1_000_017)
    assert deadlines.next_ms(has_begun=True) is None
