"""Faces for threads: an object that lives on a loop, each of whose calls waits for its result; and clients of such.

    class BlockingSender(BlockingFace[ResendingSender]):
        send = waiting(ResendingSender.send)

A face has the parameters, types and documentation of the coroutines that it names, and repeats none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from hubweir.client.loop_thread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Step = Coroutine[Any, Any, R]


class Closing(Protocol):
    """What is closed once it is not used any more."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closing)


class BlockingFace(Generic[T]):
    """inner: the object; used on the loop of `thread` only."""

    def __init__(self, thread: LoopThread, inner: T) -> None:
        self.thread = thread
        self.inner = inner


class BlockingClient(BlockingFace[C]):
    """A face whose thread is its own, and ends with it. Used as a context it is closed behind it."""

    def __init__(self, client: C, name: str) -> None:
        """client: not used anywhere else, from now on. name: whose client it is, for the name of the thread."""
        super().__init__(LoopThread(f"client of {name}"), client)
        self._is_closed = False

    def close(self) -> None:
        """Close the connection and end the thread. Stop processors before. Safe to call twice."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self.thread.run(self.inner.close())
            finally:
                self.thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()


def waiting(method: Callable[Concatenate[T, P], Step[R]]) -> Callable[Concatenate[BlockingFace[T], P], R]:
    """The method of a face that does the inner object's, and waits for its result.

    It raises what that raises, and ServiceError ILLEGAL_STATE as LoopThread.run.
    """

    @wraps(method)
    def call(face: BlockingFace[T], /, *arguments: P.args, **named: P.kwargs) -> R:
        return face.thread.run(method(face.inner, *arguments, **named))

    return call


def beginning(method: Callable[Concatenate[T, P], Step[R]]) -> Callable[Concatenate[BlockingFace[T], P], Future[R]]:
    """The method of a face that begins the inner object's; result() of the future waits, and raises as `waiting`.

    Calls begin in the order in which they are made.
    """

    @wraps(method)
    def call(face: BlockingFace[T], /, *arguments: P.args, **named: P.kwargs) -> Future[R]:
        return face.thread.begin(method(face.inner, *arguments, **named))

    return call
