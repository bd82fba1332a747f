"""The portal, loaded when somebody first asks for it: a service that nobody looks at carries none of it.

Loading takes a quarter of a second of a processor, in a thread: the loop goes on meanwhile. Requests that come until
then wait for it together. A busy machine makes seconds of that, so of several broker processes all load it as soon as
one was asked for it (AskProcess): whoever signed in at one waits at no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hubweir.env import Lane, Result
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.open_metrics import ProcessSamples

Answer = Callable[[Request], Awaitable[Response]]


class PortalOnDemand:
    """See the module's text. take_samples: asks all processes of the service what they measure."""

    def __init__(
        self, process: GatewayProcess, take_samples: Callable[[], Awaitable[Sequence[ProcessSamples]]]
    ) -> None:
        self._process = process
        self._take_samples = take_samples
        self._loaded: asyncio.Future[Answer] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether it is loaded, or being loaded."""
        return self._loaded is not None

    async def answer(self, request: Request) -> Response:
        """The portal's answer to a request whose path begins with `portal`."""
        answer = await asyncio.shield(self.load())
        return await answer(request)

    def load(self) -> asyncio.Future[Answer]:
        """Begin to load it, unless that was done before."""
        if self._loaded is None:
            self._loaded = asyncio.get_running_loop().create_future()
            self._process.env.offload(Lane.PORTAL, self._load, self._done)
        return self._loaded

    def _load(self) -> Answer:
        from hubweir.portal.portal import Portal

        return Portal(self._process, self._take_samples).answer

    def _done(self, loaded: Result[Answer]) -> None:
        assert self._loaded is not None, "it was asked for"
        try:
            self._loaded.set_result(loaded.value())
        except Exception as error:  # whatever it is, whoever waits hears of it, and the next request tries again
            self._loaded.set_exception(error)
            self._loaded = None
