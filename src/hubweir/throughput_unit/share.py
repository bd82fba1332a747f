"""How the processes that serve one namespace share its units: by what each was asked for in the last lease.

Whoever keeps the namespace collects `take_asked` of every process once a LEASE_MS and hands each its share
(`set_share`). Shares add up to the units exactly, to the byte and the event, so together the processes let through no
more than one would, but for what moves inside one lease. A process that hears nothing goes on with its last share.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.throughput_unit.throughput_unit import Capacity, Rate

LEASE_MS = 100
# One part in so many is shared evenly, so that a process whose clients were quiet can let their first events in.
EVEN_PART = 10


def share_out(total: Capacity, asked: Sequence[Capacity]) -> list[Capacity]:
    """One share for each process, in the order of asked; at least one byte and one event a second each.

    asked: what each took or refused since the last time. There is at least one process, and fewer than events a second.
    """
    bytes_in = split(total.ingress.bytes_per_second, [part.ingress.bytes_per_second for part in asked])
    events_in = split(total.ingress.events_per_second, [part.ingress.events_per_second for part in asked])
    bytes_out = split(total.egress.bytes_per_second, [part.egress.bytes_per_second for part in asked])
    events_out = split(total.egress.events_per_second, [part.egress.events_per_second for part in asked])
    return [
        Capacity(Rate(bytes_in[at], events_in[at]), Rate(bytes_out[at], events_out[at])) for at in range(len(asked))
    ]


def split(total: int, weights: Sequence[int]) -> list[int]:
    """Positive integers that add up to total: one part in EVEN_PART evenly, the rest by weight, evenly without any."""
    assert 0 < len(weights) <= total
    even = max(total // EVEN_PART // len(weights), 1)
    rest = total - even * len(weights)
    weight_sum = sum(weights)
    by_weight = weights if weight_sum else [1] * len(weights)
    weight_sum = weight_sum or len(weights)
    parts = [rest * weight // weight_sum for weight in by_weight]
    # Rounding down leaves less than one for each; those whose remainder was largest get it, the first of equals first.
    order = sorted(range(len(parts)), key=lambda at: (-(rest * by_weight[at] % weight_sum), at))
    for at in order[: rest - sum(parts)]:
        parts[at] += 1
    return [even + part for part in parts]
