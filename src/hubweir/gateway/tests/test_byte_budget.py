"""Bytes that are taken and not answered yet, and who waits for them."""

from hubweir.gateway.byte_budget import ConnectionBudget, ProcessBudget


class Socket:
    """Remembers whether it is read."""

    def __init__(self) -> None:
        self.is_read = True
        self.pauses = 0

    def pause_reading(self) -> None:
        self.is_read = False
        self.pauses += 1

    def resume_reading(self) -> None:
        self.is_read = True


def test_a_connection_over_its_budget_is_read_again_when_half_is_answered() -> None:
    socket = Socket()
    budget = ConnectionBudget(100, ProcessBudget(1_000), socket)
    budget.take_bytes(99)
    assert socket.is_read
    budget.take_bytes(1)
    assert not socket.is_read
    budget.give_back_bytes(49)
    assert not socket.is_read
    budget.give_back_bytes(1)
    assert socket.is_read


def test_what_is_over_the_budget_already_is_counted_and_pauses_once() -> None:
    socket = Socket()
    budget = ConnectionBudget(100, ProcessBudget(1_000), socket)
    budget.take_bytes(500)
    budget.take_bytes(500)
    assert budget.used == 1_000
    assert socket.pauses == 1


def test_a_full_process_stops_whoever_takes_next_and_lets_all_go_on_at_half() -> None:
    process = ProcessBudget(100)
    first, second = Socket(), Socket()
    greedy, modest = ConnectionBudget(1_000, process, first), ConnectionBudget(1_000, process, second)
    greedy.take_bytes(100)
    modest.take_bytes(1)
    assert (first.is_read, second.is_read) == (False, False)
    greedy.give_back_bytes(50)
    assert (first.is_read, second.is_read) == (False, False)
    greedy.give_back_bytes(1)
    assert (first.is_read, second.is_read) == (True, True)


def test_a_connection_over_both_budgets_waits_for_both() -> None:
    process = ProcessBudget(100)
    first, second = Socket(), Socket()
    both, other = ConnectionBudget(80, process, first), ConnectionBudget(1_000, process, second)
    both.take_bytes(80)
    other.take_bytes(40)
    other.give_back_bytes(40)
    assert not first.is_read  # paused by its own budget, which is still full
    other.take_bytes(60)
    both.give_back_bytes(40)  # its own half is free, and the process is full again
    assert not first.is_read
    other.give_back_bytes(60)
    assert first.is_read
    assert second.is_read


def test_a_closed_connection_is_not_resumed() -> None:
    process = ProcessBudget(100)
    socket = Socket()
    budget = ConnectionBudget(1_000, process, socket)
    budget.take_bytes(100)
    budget.close()
    budget.give_back_bytes(100)
    assert not socket.is_read
    assert process.used == 0


def test_who_waits_without_a_connection_is_told_once_and_may_give_up() -> None:
    class Request:
        told = 0

        def process_has_room(self) -> None:
            self.told += 1

    process = ProcessBudget(100)
    process.take_bytes(100)
    patient, gone = Request(), Request()
    process.wait(patient)
    process.wait(gone)
    process.forget(gone)
    process.give_back_bytes(49)
    assert patient.told == 0
    process.give_back_bytes(51)
    process.give_back_bytes(0)
    assert (patient.told, gone.told) == (1, 0)
