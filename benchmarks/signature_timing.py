"""T21: does the time of a refusal tell anything of a signature, or of which rules there are?

    ./run bench signature_timing            10^5 measurements of each kind
    ./run bench signature_timing 1000000    as many as are named

Two kinds of wrong tokens are checked by the code that the service checks them with, in turns, and their times are held
against each other (Student's t of the differences; |t| below 4.5 means that nothing shows):

- a signature that is wrong in its first byte against one that is wrong in its last; with the HMAC taken out, since its
  own ups and downs would cover what a comparison takes
- a wrong signature of a rule that exists against one of a rule that does not

Control arms, which must be seen or the figure says nothing: the comparison done with `==`, and a check that returns
before any HMAC when there is no such rule. What is not as it must be is measured once more, since a busy machine does
not do the same twice. Exit code 1: a difference shows, or a control arm does not. Not a test of
./run test: it measures time, and a busy machine blurs it.
"""

from __future__ import annotations

import gc
import hmac
import math
import operator
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

from hubweir.auth import authorization_rule
from hubweir.auth.authorization_rule import AuthorizationRule, Rights, Secret, find_rule, new_key, sign
from hubweir.auth.refusal import AuthRefused
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature, verify

MEASUREMENTS = 100_000
SHOWS_AT_T = 4.5
# Which branch an interpreter takes is a few nanoseconds, far below what a network lets anybody see; a name's look-up
# that ends early, or a second one, is more than this.
RULE_SHOWS_FROM_NS = 40.0
BLOCK = 40  # measurements of a kind that are held against as many of the other
RULES = tuple(
    AuthorizationRule(name, Rights.ALL, new_key(name.encode().ljust(32)), new_key(name.encode().rjust(32)))
    for name in ("RootManageSharedAccessKey", "sender", "listener")
)
NOW_S = 1_700_000_000
SIGNED = b"sb%3A%2F%2Flocalhost%2Fhub\n2000000000"
Check = Callable[[], object]
Kind = tuple[str, int]  # of a token: its rule, and the byte of its signature that is wrong


@dataclass(frozen=True)
class Difference:
    """Of two kinds of refusals. ratio: of their mean times, the second to the first."""

    t: float
    ratio: float
    nanoseconds: float

    def shows(self, from_ns: float) -> bool:
        return abs(self.t) >= SHOWS_AT_T and abs(self.nanoseconds) >= from_ns


def find(name: str, scope: Scope) -> AuthorizationRule | None:
    return find_rule(name, RULES)


def wrong_token(rule: str, *, byte: int) -> SharedAccessSignature:
    """A token of a rule, whose signature is the rule's own but for one byte."""
    signature = bytearray(sign(RULES[1].primary, SIGNED))
    signature[byte] ^= 0x55
    return SharedAccessSignature(Scope("localhost", ("hub",)), 2_000_000_000, rule, SIGNED, bytes(signature))


def refusal_of(rule: str, byte: int) -> Check:
    """The refusal of a token made now: where in memory it lies costs time too, so every block has its own."""
    token = wrong_token(rule, byte=byte)

    def check() -> None:
        try:
            verify(token, find, NOW_S)
        except AuthRefused:
            return
        raise SystemExit("a wrong signature was taken")

    return check


def difference(first: Kind, second: Kind, count: int) -> Difference:
    """Measure each so many times: in blocks, each kind in turns, the one to begin drawn by lot.

    Of a block counts each kind's faster quarter's end: what is slower tells of the machine. Blocks are compared with
    themselves, so a machine that changes its pace does not blur them.
    """
    clock, order = time.perf_counter_ns, random.Random(21)
    pairs: list[tuple[int, int]] = []
    gc.disable()
    try:
        for _ in range(count // BLOCK):
            times: tuple[list[int], list[int]] = ([], [])
            made = order.getrandbits(1)
            checks = {kind: refusal_of(*(second if kind else first)) for kind in (made, 1 - made)}
            for kind in checks:
                checks[kind]()
            for _ in range(BLOCK):
                lot = order.getrandbits(1)
                for kind in (lot, 1 - lot):
                    check = checks[kind]
                    begun = clock()
                    check()
                    times[kind].append(clock() - begun)
            pairs.append((sorted(times[0])[BLOCK // 4], sorted(times[1])[BLOCK // 4]))
    finally:
        gc.enable()
    apart = sorted(other - one for one, other in pairs)
    apart = apart[len(apart) // 20 : -len(apart) // 20]
    mean = statistics.fmean(apart)
    t = mean / (statistics.stdev(apart) / math.sqrt(len(apart)))
    return Difference(t, 1 + mean / statistics.fmean(one for one, _ in pairs), mean)


@contextmanager
def planted(**changes: object) -> Iterator[None]:
    """The code under measurement with some of it replaced."""
    before = {name: getattr(authorization_rule, name) for name in changes}
    for name, value in changes.items():
        setattr(authorization_rule, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(authorization_rule, name, value)


def hasty(rule: AuthorizationRule | None, matches: Callable[[Secret], bool]) -> bool:
    """The defect of the second control arm: no rule, no work."""
    return rule is not None and any(matches(key) for key in (rule.primary, rule.secondary))


def main(count: int) -> int:
    byte_kinds = ("sender", 0), ("sender", 31)
    rule_kinds = ("sender", 0), ("nobody", 0)
    right = sign(RULES[1].primary, SIGNED)
    known: dict[str, object] = {"sign": lambda key, text: right}
    equals: dict[str, object] = {"hmac": SimpleNamespace(new=hmac.new, compare_digest=operator.eq)}
    failed = False
    for name, kinds, plan, from_ns, wanted in (
        ("wrong in the first byte, or in the last", byte_kinds, known, 0.0, False),
        ("  control: compared with ==", byte_kinds, known | equals, 0.0, True),
        ("of a rule that is there, or of none", rule_kinds, {}, RULE_SHOWS_FROM_NS, False),
        ("  control: no rule, no HMAC", rule_kinds, {"_any_key": hasty}, RULE_SHOWS_FROM_NS, True),
    ):
        with planted(**plan):
            found = difference(*kinds, count)
            if found.shows(from_ns) is not wanted:
                found = difference(*kinds, count)
        shows = found.shows(from_ns)
        failed |= shows is not wanted
        print(
            f"{name:42} t {found.t:9.2f}   ratio {found.ratio:.5f}   {found.nanoseconds:+8.1f} ns   "
            f"{'shows' if shows else 'nothing shows'}{'' if shows is wanted else '  <- NOT AS IT MUST BE'}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else MEASUREMENTS))
