from __future__ import annotations

import pytest

from hubweir.env import Lane
from hubweir.testing.memory_faults import Fault, Killed, PowerCut
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.testing.stepped_call import SteppedCall


def write_twice(files: MemoryFiles, name: str, order: list[str]) -> str:
    """A call with six file calls; order notes how far it is."""
    file = files.open(name, create=True)
    for number in range(2):
        file.write_and_sync(512 * number, [name.encode() * 512])
        order.append(name)
    files.sync_folder("")
    return name


def history(seed: int, interleaved: float) -> tuple[str, list[str]]:
    env, order, ended = SimulatedEnv(seed, interleaved=interleaved), [], []
    for name in "abcd":
        env.offload(
            Lane.WRITES, lambda name=name: write_twice(env.files, name, order), lambda done: ended.append(done.value())
        )
    env.run()
    assert sorted(ended) == list("abcd") and env.files.paths() == list("abcd")
    return "".join(order), [env.trace.hexdigest(), env.files.trace.hexdigest()]


def test_calls_come_between_the_steps_of_others_and_a_seed_is_a_history() -> None:
    one_step = {history(seed, 0.0)[0] for seed in range(10)}
    assert all(order[0::2] == order[1::2] for order in one_step)
    stepped = [history(seed, 0.5) for seed in range(10)]
    assert any(order[0::2] != order[1::2] for order, _ in stepped)
    assert stepped == [history(seed, 0.5) for seed in range(10)]


def test_the_loop_goes_on_while_a_call_has_stopped() -> None:
    env, seen = SimulatedEnv(3, interleaved=1.0), []
    order: list[str] = []
    env.offload(Lane.WRITES, lambda: write_twice(env.files, "a", order), lambda done: seen.append("done"))
    for at in range(0, 200, 2):
        env.call_later(at, lambda: seen.append(len(order)))
    env.run()
    assert {0, 1, 2, "done"} <= set(seen)


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_ends_a_call_between_its_steps(power_cut: bool) -> None:
    sizes = set()
    for seed in range(40):
        env, order, undone = SimulatedEnv(seed, interleaved=1.0), list[str](), list[str]()

        def call(env: SimulatedEnv = env, order: list[str] = order, undone: list[str] = undone) -> None:
            try:
                write_twice(env.files, "a", order)
            finally:
                env.files.open("b", create=True)
                undone.append("a dead process does nothing more")

        env.offload(Lane.WRITES, call, lambda done: None)
        env.run_for(1 + seed)
        env.crash(power_cut=power_cut)
        calls = env.files.calls
        assert not undone and "b" not in env.files.paths()
        again = env.restart()
        again.run()
        assert again.files.calls == calls and len(order) in (0, 1, 2)
        sizes.add(len(again.files.bytes_of("a")) if "a" in again.files.paths() else None)
    assert len(sizes) > 2


@pytest.mark.parametrize(("fault", "end"), [(Fault.POWER_CUT, PowerCut), (Fault.KILL, Killed)])
def test_the_end_of_the_world_inside_a_call_ends_the_run(fault: Fault, end: type[BaseException]) -> None:
    env = SimulatedEnv(1, interleaved=0.5)
    env.files.plan(fault, 4)
    env.offload(Lane.WRITES, lambda: write_twice(env.files, "a", []), lambda done: None)
    with pytest.raises(end):
        env.run()
    env.crash(power_cut=fault is Fault.POWER_CUT)


def test_an_error_of_a_stepped_call_comes_out_where_the_value_is_wanted() -> None:
    call: SteppedCall[float] = SteppedCall(lambda: 1 // 0)
    assert call.advance() and call.outcome is not None
    with pytest.raises(ZeroDivisionError):
        call.outcome.value()
