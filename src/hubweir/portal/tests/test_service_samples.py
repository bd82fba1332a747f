"""However many look, processes are asked once in a while, and one question is under way at a time."""

import asyncio

import pytest

from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.portal.service_samples import KEPT_MS, ServiceSamples
from hubweir.testing.simulated_env import SimulatedEnv


def test_all_who_look_at_once_share_one_scrape_and_later_ones_get_a_newer() -> None:
    env, taken = SimulatedEnv(1), list[int]()

    async def take() -> list[ProcessSamples]:
        taken.append(env.monotonic_ms())
        await asyncio.sleep(0)
        return [ProcessSamples(str(len(taken)), None)]

    async def look() -> list[str]:
        samples = ServiceSamples(take, env)
        told = [await asyncio.gather(*(samples.now() for _ in range(10)))]
        env.run_for(KEPT_MS - 1)
        told.append([await samples.now()])
        env.run_for(1)
        told.append([await samples.now()])
        return [each[0].process for several in told for each in several]

    assert asyncio.run(look()) == ["1"] * 11 + ["2"]


def test_a_scrape_that_fails_is_made_again() -> None:
    env, fails = SimulatedEnv(1), [True]

    async def take() -> list[ProcessSamples]:
        if fails.pop() if fails else False:
            raise OSError("planted")
        return []

    async def look() -> None:
        samples = ServiceSamples(take, env)
        with pytest.raises(OSError, match="planted"):
            await samples.now()
        assert await samples.now() == []

    asyncio.run(look())
