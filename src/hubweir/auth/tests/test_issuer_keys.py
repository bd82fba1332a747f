"""An issuer changes its keys while the service runs: new ones count, old ones end, a bad file is no change."""

from __future__ import annotations

import logging

import pytest

from hubweir.alarms import ISSUER_KEYS, Alarms
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.auth.json_web_key import BadKeys
from hubweir.auth.json_web_token import JsonWebToken
from hubweir.auth.refusal import AuthRefused
from hubweir.counters import Counters
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.testing.token_issuer import AUDIENCE, ISSUER, TestIssuer, claims_until

EVERY_MS = 2_000


class KeyFile:
    """A file that counts how often it is read."""

    def __init__(self, content: bytes) -> None:
        self.content: bytes | None = content
        self.reads = 0

    def read(self) -> bytes:
        self.reads += 1
        if self.content is None:
            raise FileNotFoundError(2, "No such file or directory")
        return self.content


@pytest.fixture(scope="module")
def old() -> TestIssuer:
    return TestIssuer()


@pytest.fixture(scope="module")
def new() -> TestIssuer:
    return TestIssuer()


class World:
    def __init__(self, issuer: TestIssuer) -> None:
        self.env = SimulatedEnv(3)
        self.file = KeyFile(issuer.keys_file())
        self.keys = IssuerKeys(ISSUER, AUDIENCE, self.file.read)
        self.changes = 0
        self.keys.on_change(self.changed)
        self.alarms = Alarms(self.env, Counters())
        self.keys.follow(self.env, EVERY_MS, self.alarms)

    def changed(self) -> None:
        self.changes += 1

    def takes(self, issuer: TestIssuer) -> bool:
        token = JsonWebToken.parse(issuer.token(claims_until(5_000, "Data Owner")))
        try:
            self.keys.verify(token, 1_000)
        except AuthRefused:
            return False
        return True


@pytest.fixture
def world(old: TestIssuer) -> World:
    return World(old)


def test_new_keys_count_and_old_ones_end_within_one_look(world: World, old: TestIssuer, new: TestIssuer) -> None:
    world.file.content = new.keys_file()
    assert world.takes(old) and not world.takes(new)
    world.env.run_for(EVERY_MS + 100)
    assert world.takes(new) and not world.takes(old)
    assert world.changes == 1


def test_the_file_is_read_at_its_pace_whatever_tokens_come(world: World, old: TestIssuer) -> None:
    for _ in range(200):
        assert world.takes(old)
    assert world.file.reads == 1  # at the start
    world.env.run_for(100 * EVERY_MS)
    assert 90 <= world.file.reads <= 101
    assert world.changes == 0  # the same file is no change


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff" * 100, b"x" * 300_000], ids=str)
def test_a_bad_file_keeps_the_old_keys_and_says_so_once(
    world: World, old: TestIssuer, new: TestIssuer, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    world.file.content = content
    with caplog.at_level(logging.ERROR):
        world.env.run_for(10 * EVERY_MS)
    assert world.takes(old)
    assert (world.changes, len(caplog.records)) == (0, 1)
    [alarm] = world.alarms.current()
    assert alarm.kind is ISSUER_KEYS and ISSUER in alarm.about
    world.file.content = new.keys_file()
    world.env.run_for(2 * EVERY_MS)
    assert world.alarms.current() == ()
    assert world.takes(new)


def test_the_old_file_back_in_place_is_no_change_and_no_problem(world: World, old: TestIssuer) -> None:
    content, world.file.content = world.file.content, None
    world.env.run_for(2 * EVERY_MS)
    assert len(world.alarms.current()) == 1
    world.file.content = content
    world.env.run_for(2 * EVERY_MS)
    assert (world.alarms.current(), world.changes) == ((), 0)


def test_after_its_end_nothing_is_read(world: World) -> None:
    world.env.run_for(EVERY_MS + 1)  # in the middle of a reading, by this seed or another
    world.keys.stop()
    before = world.file.reads
    world.env.run_for(10 * EVERY_MS)
    assert world.file.reads <= before + 1
    assert world.changes == 0


def test_following_that_a_change_ends_reads_no_more(world: World, new: TestIssuer) -> None:
    world.keys.on_change(world.keys.stop)
    world.file.content = new.keys_file()
    world.env.run_for(2 * EVERY_MS)
    reads = world.file.reads
    assert world.changes == 1
    world.env.run_for(10 * EVERY_MS)
    assert world.file.reads == reads


def test_a_bad_file_at_the_start_is_refused() -> None:
    with pytest.raises(BadKeys):
        IssuerKeys(ISSUER, AUDIENCE, lambda: b"")
