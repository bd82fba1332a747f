"""Capture beside a log: windows to the millisecond of virtual time, what is in files, who waits for whom."""

from __future__ import annotations

from hubweir.broker.tests.capture_world import CaptureWorld

START = "2023/11/14/22"


def test_window_ends_after_its_interval_to_the_millisecond() -> None:
    with CaptureWorld() as world:
        world.open()
        world.env.run(100)
        world.send(3)
        world.env.run(59_999)
        assert not world.archives()
        world.env.run(60_500)
        assert list(world.archives()) == [f"capture/ns/hub/0/{START}/14/20.avro"]
        assert [len(file) for file in world.records()] == [3]
        world.check()
