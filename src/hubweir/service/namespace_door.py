"""The keeper's answers to other processes about namespaces: which there are, made, deleted.

A process follows the list over the stream on which it follows catalogs, and is waited for in the same way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hubweir.broker.commands.command import OnAnswer, Push
from hubweir.broker.commands.keeper import (
    AskRestore,
    CreateNamespace,
    DeleteNamespace,
    FollowNamespaces,
    NamespacesApplied,
    NamespacesChanged,
    NamespacesTold,
    RestoreNamespace,
    RestoreTold,
)
from hubweir.broker.commands.process import Done
from hubweir.broker.refusals import refusal_of
from hubweir.drivers.tasks import Tasks
from hubweir.errors import HubweirError, ServiceError
from hubweir.gateway.namespace_management import NewNamespace
from hubweir.namespace.secret import Secret
from hubweir.service.served_namespaces import ServedNamespaces
from hubweir.service.told_namespaces import encode_namespaces

NamespaceCommand = (
    FollowNamespaces | NamespacesApplied | CreateNamespace | DeleteNamespace | RestoreNamespace | AskRestore
)


class NamespaceDoor:
    """See the module's text. push: gives a push to its owner's process. on_dead: as of KeeperServer."""

    def __init__(self, served: ServedNamespaces, push: Callable[[Push], None], on_dead: Callable[[int], None]) -> None:
        self._served = served
        self._push = push
        self._on_dead = on_dead
        self._tasks = Tasks("namespaces that processes asked for")

    async def close(self) -> None:
        """Give up what is being answered."""
        await self._tasks.stop()

    def submit(self, command: NamespaceCommand, on_answer: OnAnswer) -> None:
        match command:
            case FollowNamespaces():
                self._follow(command, on_answer)
            case NamespacesApplied(version=version):
                on_answer(Done())
                self._served.followers.applied(command.owner.process, version)
            case CreateNamespace():
                wanted = NewNamespace(
                    name=command.namespace,
                    hostnames=command.hostnames,
                    profile=command.profile,
                    key=Secret(command.key),
                    throughput_units=command.held,
                    maximum_throughput_units=command.maximum,
                )
                self._tasks.start(_answered(self._served.create(wanted), on_answer), name="create")
            case DeleteNamespace():
                self._tasks.start(_answered(self._served.delete(command.namespace), on_answer), name="delete")
            case RestoreNamespace(source=source):
                self._tasks.start(_answered(self._served.restore(command.namespace, source), on_answer), name="restore")
            case AskRestore():
                self._tasks.start(self._tell_restore(command.namespace, on_answer), name="state of a restore")

    def left(self, process: int) -> None:
        """Its stream ended: it is waited for until it comes again or is dead."""
        self._served.followers.left(process)

    def gone(self, process: int) -> None:
        """The process ended: no change waits for it."""
        self._served.followers.gone(process)

    async def _tell_restore(self, name: str, on_answer: OnAnswer) -> None:
        try:
            state = await self._served.restore_state(name)
        except ServiceError as error:
            on_answer(refusal_of(error))
        else:
            on_answer(RestoreTold(state.copied_bytes, state.size_bytes, state.is_over, state.problem))

    def _follow(self, command: FollowNamespaces, on_answer: OnAnswer) -> None:
        served, owner = self._served, command.owner
        on_answer(NamespacesTold(served.version, encode_namespaces(served.namespaces)))

        def tell(version: int, namespaces: bytes) -> None:
            self._push(NamespacesChanged(owner, version, namespaces))

        served.followers.came(owner.process, served.version, tell, lambda: self._on_dead(owner.process))


async def _answered(step: Awaitable[None], on_answer: OnAnswer) -> None:
    try:
        await step
    except (HubweirError, OSError) as error:
        on_answer(refusal_of(error))
    else:
        on_answer(Done())
