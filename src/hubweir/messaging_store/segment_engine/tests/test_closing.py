from __future__ import annotations

from hubweir.testing.memory_faults import Fault


def test_a_finished_segment_leaves_its_indexes(bench) -> None:
    for number in range(30):
        bench.append(b"%d" % number * 200)
    paths = bench.env.files.paths()
    finished = [name.removesuffix(".log") for name in bench.segments()[:-1]]
    assert finished and all(any(f"{stem}.offsets" in path for path in paths) for stem in finished)


def test_a_closed_log_gives_back_the_spare_space(bench) -> None:
    bench.append(b"a")
    path = bench.log._state.active.path
    assert bench.env.files.size_of(path) >= 1 << 20
    bench.store.close(lambda: None)
    bench.env.run()
    assert bench.env.files.size_of(path) < 1000


def test_closing_ends_even_when_every_call_fails(bench) -> None:
    bench.append(b"a")
    bench.env.files.plan(Fault.EIO, forever=True)
    closed: list[bool] = []
    bench.log.close(lambda: closed.append(True))
    bench.env.run_for(5000)
    assert closed == [True]
    bench.env.files.heal()
    bench.reopen()
    assert bench.everything() == {0: b"a"}
