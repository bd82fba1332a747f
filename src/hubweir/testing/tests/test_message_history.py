"""The checkers of histories (T15): a good history passes, and each planted fault is found where it is observed.

Long because each fault is a small history of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from hubweir.testing.history_values import SeenHold, Violation
from hubweir.testing.message_history import MessageHistory, SeenAnswer, SeenOutcome

LOCK_MS = 1_000


class Story:
    """A history in short words: every call takes a millisecond."""

    def __init__(self, **how: int) -> None:
        self.history = MessageHistory(**how)  # type: ignore[arg-type]
        self.now_ms = 0
        self.group = 0
        self.tokens = 0
        self.states = self.history.sessions

    def send(self, *texts: str, answer: bool | None = True, **how: object) -> None:
        self.group += 1
        for text in texts:
            self.history.send(self.group, text, text.encode(), self.now_ms, **how)  # type: ignore[arg-type]
        self.now_ms += 1
        if answer:
            self.history.accepted(self.group, self.now_ms)
        elif answer is False:
            self.history.refused(self.group)

    def receive(self, text: str, *, body: str | None = None, number: int | None = None, **how: object) -> bytes:
        self.now_ms += 1
        self.tokens += 1
        token = b"token %d" % self.tokens
        at = list(self.history.sent).index(text) + 1 if text in self.history.sent else 99
        self.history.received(
            text,
            number or at,
            (body or text).encode(),
            self.now_ms,
            token=token,
            until_ms=self.now_ms + LOCK_MS,
            **how,  # type: ignore[arg-type]
        )
        return token

    def take(self, text: str) -> None:
        self.now_ms += 1
        self.history.taken(text, list(self.history.sent).index(text) + 1, text.encode(), self.now_ms)

    def settle(
        self, token: bytes, outcome: SeenOutcome = SeenOutcome.COMPLETE, answer: SeenAnswer = SeenAnswer.DONE
    ) -> None:
        self.now_ms += 1
        self.history.settled(self.history.settling(token, outcome, self.now_ms), answer)

    def hold(self, session: str = "s") -> SeenHold:
        self.now_ms += 1
        return self.history.hold(session, self.now_ms + LOCK_MS, self.now_ms)

    def left(self, *texts: str, dead: tuple[str, ...] = ()) -> None:
        found = [(text, list(self.history.sent).index(text) + 1, text.encode(), text in dead) for text in texts]
        self.history.left(found, self.now_ms)


def a_good_history_of_every_kind() -> None:
    story = Story(most_deliveries=3, window_ms=100)
    story.send("a", "b", "c", "d", "e", session="s")
    story.send("f", answer=None)
    story.send("g", answer=False)
    story.send("h", "i", message_id="id")
    story.now_ms += 200
    story.send("j", message_id="id")
    hold = story.hold()
    story.states.setting("s", b"1")
    story.states.set_done("s", b"1", is_done=True)
    first, second = (story.receive(text, hold=hold, deliveries=0) for text in "ab")
    story.settle(first, SeenOutcome.ABANDON)
    first = story.receive("a", hold=hold, deliveries=1)
    third = story.receive("c", hold=hold, deliveries=0)
    story.settle(first)
    story.settle(third, SeenOutcome.DEFER)
    story.settle(second, SeenOutcome.RELEASE)
    story.history.let_go(hold)
    story.settle(story.receive("c", deliveries=0, is_asked_by_number=True), SeenOutcome.DEAD_LETTER)
    hold = story.hold()
    story.states.state_seen("s", b"1")
    story.receive("b", hold=hold, deliveries=0)
    story.history.crashed()
    hold = story.hold()
    story.receive("b", hold=hold, deliveries=1)
    story.take("d")
    story.history.may_be_taken(1)
    story.left("b", "c", "h", "j", dead=("c",))


def a_lock_lost_by_the_end_of_another_messages_broker() -> None:
    story = Story()
    story.send("a", "b")
    token = story.receive("a")
    story.receive("b")
    story.history.broker_ended("b")
    story.receive("b")
    story.settle(token, answer=SeenAnswer.LOST)


def a_token_that_is_good_behind_its_brokers_end() -> None:
    story = Story()
    story.send("a")
    token = story.receive("a")
    story.history.broker_ended("a")
    story.settle(token)


def gone_and_back_behind_its_brokers_end() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"))
    story.history.broker_ended("a")
    story.receive("a")


def lost() -> None:
    story = Story()
    story.send("a", "b")
    story.left("a")


def lost_beyond_what_may_be_taken() -> None:
    story = Story()
    story.send("a", "b", "c")
    story.history.may_be_taken(1)
    story.left("a")


def a_part_of_a_group() -> None:
    story = Story()
    story.send("a", "b", answer=None)
    story.left("a")


def twice_at_the_end() -> None:
    story = Story()
    story.send("a")
    story.left("a", "a")


def refused_and_there() -> None:
    story = Story()
    story.send("a", answer=False)
    story.receive("a")


def other_bytes() -> None:
    story = Story()
    story.send("a")
    story.receive("a", body="x")


def bytes_that_nobody_sent() -> None:
    Story().receive("a")


def a_number_of_two_messages() -> None:
    story = Story()
    story.send("a", "b")
    story.receive("a", number=7)
    story.receive("b", number=7)


def another_number() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"), SeenOutcome.ABANDON)
    story.receive("a", number=7)


def locked_by_two() -> None:
    story = Story()
    story.send("a")
    story.receive("a")
    story.now_ms += LOCK_MS - 2
    story.receive("a")


def given_while_it_is_settled() -> None:
    story = Story()
    story.send("a")
    story.history.settling(story.receive("a"), SeenOutcome.COMPLETE, story.now_ms)
    story.now_ms += LOCK_MS
    story.receive("a")


def settled_behind_the_end() -> None:
    story = Story()
    story.send("a")
    token = story.receive("a")
    story.now_ms += LOCK_MS - 1
    story.settle(token)


def settled_behind_a_crash() -> None:
    story = Story()
    story.send("a")
    token = story.receive("a")
    story.history.crashed()
    story.settle(token)


def settled_twice() -> None:
    story = Story()
    story.send("a")
    token = story.receive("a")
    story.settle(token, SeenOutcome.DEFER)
    story.settle(token, SeenOutcome.ABANDON)


def lost_while_it_holds() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"), answer=SeenAnswer.LOST)


def renewed_behind_the_end() -> None:
    story = Story()
    story.send("a")
    token = story.receive("a")
    story.history.renewed(token, 10_000, story.now_ms + LOCK_MS)


def completed_and_there() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"))
    story.left("a")


def completed_and_received() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"))
    story.history.crashed()
    story.receive("a")


def taken_twice() -> None:
    story = Story()
    story.send("a")
    story.take("a")
    story.take("a")


def taken_and_shown() -> None:
    story = Story()
    story.send("a")
    story.take("a")
    story.history.peeked("a", 1, b"a", story.now_ms, asked=story.history.tick + 1)


def deferred_and_received() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"), SeenOutcome.DEFER)
    story.receive("a")


def a_dead_letter_in_the_queue() -> None:
    story = Story()
    story.send("a")
    story.settle(story.receive("a"), SeenOutcome.DEAD_LETTER)
    story.receive("a")


def a_dead_letter_by_nobody_s_word() -> None:
    story = Story(most_deliveries=3)
    story.send("a")
    story.left("a", dead=("a",))


def a_token_for_two() -> None:
    story = Story()
    story.send("a", "b")
    story.receive("a")
    story.tokens -= 1
    story.receive("b")


def a_delivery_that_is_not_counted() -> None:
    story = Story(most_deliveries=5)
    story.send("a")
    story.settle(story.receive("a", deliveries=0), SeenOutcome.ABANDON)
    story.receive("a", deliveries=0)


def a_release_that_counts() -> None:
    story = Story(most_deliveries=5)
    story.send("a")
    story.settle(story.receive("a", deliveries=0), SeenOutcome.RELEASE)
    story.receive("a", deliveries=1)


def two_counts_for_one_crash() -> None:
    story = Story(most_deliveries=5)
    story.send("a")
    story.receive("a", deliveries=0)
    story.history.crashed()
    story.receive("a", deliveries=3)


def delivered_too_often() -> None:
    story = Story(most_deliveries=1)
    story.send("a")
    story.settle(story.receive("a", deliveries=0), SeenOutcome.ABANDON)
    story.receive("a", deliveries=1)


def an_id_twice_in_its_window() -> None:
    story = Story(window_ms=100)
    story.send("a", message_id="id")
    story.settle(story.receive("a"))
    story.now_ms += 90
    story.send("b", message_id="id")
    story.receive("b")


def an_id_that_all_lost() -> None:
    story = Story(window_ms=100)
    story.send("a", message_id="id")
    story.send("b", message_id="id")
    story.left()


def a_session_of_two_holders() -> None:
    story = Story()
    story.hold()
    story.now_ms += LOCK_MS - 2
    story.hold()


def a_later_message_first() -> None:
    story = Story()
    story.send("a", "b", session="s")
    story.receive("b", hold=story.hold())


def scheduled_messages_against_their_numbers() -> None:
    story = Story()
    story.send("a", "b", session="s", is_scheduled=True)
    hold = story.hold()
    first = story.receive("a", hold=hold, number=8)
    story.settle(story.receive("b", hold=hold, number=7), SeenOutcome.ABANDON)
    story.settle(first, SeenOutcome.ABANDON)
    story.receive("a", hold=hold, number=8)


def a_scheduled_message_shown_by_its_first_number_when_it_had_another() -> None:
    story = Story()
    story.send("a", is_scheduled=True)
    story.history.peeked("a", 1, b"a", story.now_ms, asked=story.history.tick)
    story.receive("a", number=8)
    story.history.peeked("a", 1, b"a", story.now_ms, asked=story.history.tick + 1)


def a_later_message_before_one_that_was_given_back() -> None:
    story = Story()
    story.send("a", "b", session="s")
    hold = story.hold()
    story.settle(story.receive("a", hold=hold), SeenOutcome.ABANDON)
    story.receive("b", hold=hold)


def a_later_message_while_one_is_given_back() -> None:
    story = Story()
    story.send("a", "b", session="s")
    hold = story.hold()
    settlement = story.history.settling(story.receive("a", hold=hold), SeenOutcome.ABANDON, story.now_ms)
    story.receive("b", hold=hold)
    story.history.settled(settlement, SeenAnswer.DONE)


def a_later_message_while_one_that_is_there_again_was_given_back() -> None:
    story = Story()
    story.send("a", session="s", may_expire=True)
    story.send("b", session="s")
    hold = story.hold()
    story.history.settling(story.receive("a", hold=hold), SeenOutcome.RELEASE, story.now_ms)
    story.receive("b", hold=hold)
    story.receive("a", hold=hold)


def a_later_message_behind_what_its_last_holder_had() -> None:
    story = Story()
    story.send("a", "b", session="s")
    hold = story.hold()
    story.receive("a", hold=hold)
    story.history.let_go(hold)
    story.receive("b", hold=story.hold())


def a_session_whose_last_holder_is_undecided() -> None:
    story = Story()
    story.send("a", session="s")
    hold = story.hold()
    story.history.settling(story.receive("a", hold=hold), SeenOutcome.COMPLETE, story.now_ms)
    story.history.let_go(hold)
    story.hold()


def a_session_whose_state_is_on_its_way() -> None:
    story = Story()
    hold = story.hold()
    story.states.setting("s", b"1")
    story.history.let_go(hold)
    story.hold()


def a_message_for_one_who_lost_the_session() -> None:
    story = Story()
    story.send("a", session="s")
    hold = story.hold()
    story.history.let_go(hold)
    story.receive("a", hold=hold)


def a_message_of_another_session() -> None:
    story = Story()
    story.send("a", session="s")
    story.receive("a", hold=story.hold("t"))


def a_state_that_was_forgotten() -> None:
    story = Story()
    story.hold()
    story.states.setting("s", b"1")
    story.states.set_done("s", b"1", is_done=True)
    story.history.crashed()
    story.states.state_seen("s", None)


def a_state_that_was_refused() -> None:
    story = Story()
    story.states.setting("s", b"1")
    story.states.set_done("s", b"1", is_done=False)
    story.states.state_seen("s", b"1")


FAULTS = [
    lost, lost_beyond_what_may_be_taken, a_part_of_a_group, twice_at_the_end, refused_and_there, other_bytes,
    bytes_that_nobody_sent, a_number_of_two_messages, another_number, locked_by_two, given_while_it_is_settled,
    settled_behind_the_end, settled_behind_a_crash, settled_twice, lost_while_it_holds, renewed_behind_the_end,
    completed_and_there, completed_and_received, taken_twice, taken_and_shown, deferred_and_received,
    a_dead_letter_in_the_queue, a_dead_letter_by_nobody_s_word, a_token_for_two, a_delivery_that_is_not_counted,
    a_release_that_counts, two_counts_for_one_crash, delivered_too_often, an_id_twice_in_its_window,
    an_id_that_all_lost, a_session_of_two_holders, a_later_message_first, scheduled_messages_against_their_numbers,
    a_scheduled_message_shown_by_its_first_number_when_it_had_another,
    a_later_message_before_one_that_was_given_back, a_later_message_while_one_is_given_back,
    a_later_message_while_one_that_is_there_again_was_given_back,
    a_later_message_behind_what_its_last_holder_had, a_session_whose_last_holder_is_undecided,
    a_session_whose_state_is_on_its_way, a_message_for_one_who_lost_the_session,
    a_message_of_another_session, a_state_that_was_forgotten, a_state_that_was_refused,
    a_lock_lost_by_the_end_of_another_messages_broker, a_token_that_is_good_behind_its_brokers_end,
    gone_and_back_behind_its_brokers_end,
]  # fmt: skip


def test_a_good_history_passes() -> None:
    a_good_history_of_every_kind()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(fault: Callable[[], None]) -> None:
    with pytest.raises(Violation):
        fault()


def test_scheduled_messages_come_by_the_numbers_that_they_got_when_they_became_active() -> None:
    story = Story()
    story.send("a", "b", session="s", is_scheduled=True)
    hold = story.hold()
    first, second = story.receive("b", hold=hold, number=7), story.receive("a", hold=hold, number=8)
    story.settle(first, SeenOutcome.ABANDON)
    story.settle(second, SeenOutcome.ABANDON)
    story.receive("b", hold=hold, number=7)
    story.receive("a", hold=hold, number=8)


def test_a_peek_that_was_asked_for_before_a_message_became_active_shows_its_first_number() -> None:
    story = Story()
    story.send("a", is_scheduled=True)
    story.history.peeked("a", 1, b"a", story.now_ms, asked=story.history.tick)
    asked = story.history.tick
    story.receive("a", number=8)
    story.history.peeked("a", 1, b"a", story.now_ms, asked=asked)
    story.history.peeked("a", 8, b"a", story.now_ms, asked=story.history.tick)


@pytest.mark.parametrize("outcome", [SeenOutcome.ABANDON, SeenOutcome.RELEASE])
def test_a_message_that_may_expire_may_be_passed_while_it_is_given_back(outcome: SeenOutcome) -> None:
    story = Story()
    story.send("a", session="s", may_expire=True)
    story.send("b", session="s")
    hold = story.hold()
    settlement = story.history.settling(story.receive("a", hold=hold), outcome, story.now_ms)
    story.receive("b", hold=hold)
    story.history.settled(settlement, SeenAnswer.DONE)


def test_a_state_that_is_refused_before_an_earlier_one_is_set_is_the_refused_one() -> None:
    story = Story()
    for state in (b"1", b"2"):
        story.states.setting("s", state)
    story.states.set_done("s", b"2", is_done=False)
    story.states.set_done("s", b"1", is_done=True)
    story.states.state_seen("s", b"1")
    with pytest.raises(Violation, match="has the state b'2'"):
        story.states.state_seen("s", b"2")


def test_what_nobody_can_tell_is_no_fault() -> None:
    story = Story(window_ms=1_000)
    story.send("a", "b", answer=None)  # whole or not at all
    story.send("c", message_id="id")
    story.send("d", message_id="id")  # a duplicate
    story.history.settling(story.receive("c"), SeenOutcome.COMPLETE, story.now_ms)
    story.history.crashed()  # done, or not
    story.send("e")
    story.history.may_be_taken(1)
    story.left()


@pytest.mark.parametrize("may_be_taken", [1, 0])
def test_of_a_send_that_nobody_answered_an_id_is_stored_once_whoever_has_that_one(may_be_taken: int) -> None:
    story = Story(window_ms=1_000)
    for text, message_id in (("a", "id"), ("b", "id"), ("c", None)):
        story.history.send(1, text, text.encode(), story.now_ms, message_id=message_id)
    story.take("c")  # so that all three were stored, and b dropped for a
    story.history.may_be_taken(may_be_taken)
    if may_be_taken:
        story.left()
    else:
        with pytest.raises(Violation, match="P1: lost: a; 1, and 0 may be gone"):
            story.left()


def test_what_the_end_of_one_broker_of_several_leaves_open_is_no_fault() -> None:
    story = Story(slack_ms=100)
    story.send("a", "b", "c")
    first = story.history.settling(story.receive("a"), SeenOutcome.COMPLETE, story.now_ms)
    second = story.history.settling(story.receive("b"), SeenOutcome.COMPLETE, story.now_ms)
    third = story.receive("c")
    for text in "abc":
        story.history.broker_ended(text)
    for settlement in (first, second):
        story.history.settled(settlement, SeenAnswer.UNKNOWN)
    story.settle(third, answer=SeenAnswer.LOST)
    story.receive("b")  # that was not done
    story.receive("c")
    story.left("b", "c")  # the other one was


def test_whose_giving_back_was_not_answered_may_be_anothers() -> None:
    story = Story(slack_ms=100)
    story.send("a", "b")
    tokens = [story.receive(text) for text in "ab"]
    for token in tokens:
        story.settle(token, SeenOutcome.ABANDON, SeenAnswer.UNKNOWN)
    story.receive("a")
    story.settle(tokens[1])  # of this one it was not done


def test_clients_that_see_late_may_see_locks_overlap_by_as_much() -> None:
    story = Story(slack_ms=100)
    story.send("a")
    first = story.receive("a")
    story.now_ms += LOCK_MS - 50
    story.settle(story.receive("a"))
    story.settle(first, answer=SeenAnswer.LOST)


def test_a_long_history_is_checked_in_the_time_of_its_length() -> None:
    """About 240,000 observations a second here; a tenth of that must do, on a machine that does other things, too."""
    count = 4_000
    taken = []
    for many in (count, 4 * count):
        story = Story()
        began = time.process_time()
        for number in range(many):
            story.history.send(number, f"m{number}", b"body", number, session="s")
            story.history.accepted(number, number)
        hold = story.history.hold("s", 10**9, 0)
        for number in range(many):
            token = b"%d" % number
            story.history.received(
                f"m{number}", number, b"body", number, token=token, until_ms=10**9, deliveries=0, hold=hold
            )
            story.history.settled(story.history.settling(token, SeenOutcome.COMPLETE, number), SeenAnswer.DONE)
        story.history.left([], 0)
        taken.append(5 * many / (time.process_time() - began))
    print(f"{taken[0]:,.0f} and {taken[1]:,.0f} observations a second")
    assert min(taken) > 20_000


def test_of_a_partitioned_queue_one_fragment_crashes_alone() -> None:
    story = Story(is_partitioned=True)
    story.send("here")
    story.send("there")
    here, there = story.receive("here"), story.receive("there")
    story.history.crashed(lambda sent: sent.text == "here")
    story.settle(here, answer=SeenAnswer.LOST)
    story.settle(there)
    with pytest.raises(Violation, match="P7: there was gone"):
        story.receive("there")
    assert [sent.text for sent in story.history.waiting] == ["here"]


def test_of_a_partitioned_queue_what_one_fragment_took_says_nothing_of_another_ones_log() -> None:
    story = Story(is_partitioned=True)
    story.send("here", "there")
    story.settle(story.receive("here"), answer=SeenAnswer.UNKNOWN)
    story.now_ms += LOCK_MS
    story.receive("here")  # it was not done, for now
    story.settle(story.receive("there"))  # in another log
    story.history.crashed(lambda sent: sent.text == "here")
    assert story.history.waiting == []  # it may be gone


def test_a_session_in_another_fragment_is_held_on_behind_a_crash() -> None:
    story = Story(is_partitioned=True)
    story.send("one", session="a")
    story.send("two", session="b")
    story.history.hold("a", story.now_ms + LOCK_MS, story.now_ms)
    story.history.hold("b", story.now_ms + LOCK_MS, story.now_ms)
    story.history.crashed(lambda sent: sent.session == "a")
    story.history.hold("a", story.now_ms + LOCK_MS, story.now_ms)
    with pytest.raises(Violation, match="P10: session b is another one's"):
        story.history.hold("b", story.now_ms + LOCK_MS, story.now_ms)
