"""Removes a namespace that is being deleted: its entities with their logs, then its catalog.

Its catalog says that it is being deleted, and it is served nowhere. What cannot be removed now, as while a store is
away, is removed later: after 1 s, then ever later, up to every 30 s. After a crash the next start goes on with it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from hubweir.errors import HubweirError, ServiceError
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.namespace import Namespace
from hubweir.service.completions import answer
from hubweir.service.stored_namespaces import StoredCatalog, StoredNamespaces

FIRST_RETRY_S, LAST_RETRY_S = 1.0, 30.0
# Deletions under way at a time: each has steps on a disk, and brokers take so many commands at once.
AT_ONCE = 32


class NamespaceRemoval:
    """See the module's text. keeper: of its catalog, which nobody else uses any more."""

    def __init__(
        self, stored: StoredNamespaces, catalog: StoredCatalog, keeper: CatalogKeeper, namespace: Namespace
    ) -> None:
        self._stored = stored
        self._catalog = catalog
        self._keeper = keeper
        self.namespace = namespace

    async def attempt(self) -> Exception | None:
        """Remove what can be removed now; None: all of it is gone. Else what is in the way."""
        problems = await self._remove_entities()
        if self.namespace.unfinished():  # by a crash, or by what failed just now
            problems += await answer(self._keeper.start)
        if self.namespace.entities(EntityDescription) or self.namespace.unfinished():
            return problems[0] if problems else HubweirError("not all of its entities are removed yet")
        self._keeper.stop()
        try:
            await self._stored.remove(self._catalog)
        except (HubweirError, OSError) as error:
            return error
        return None

    async def go_on(self) -> None:
        """Try until all of it is gone."""
        wait_s = FIRST_RETRY_S
        while await self.attempt() is not None:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LAST_RETRY_S)

    async def _remove_entities(self) -> list[ServiceError]:
        # What lies inside an entity goes with it.
        left = [each for each in self.namespace.entities(EntityDescription) if each.description.parent is None]
        places = asyncio.Semaphore(AT_ONCE)

        async def remove(name: str, kind: type[EntityDescription]) -> EntityDescription | ServiceError:
            async with places:
                return await answer(partial(self._keeper.delete, name, kind))

        removed = await asyncio.gather(*(remove(each.name, type(each.description)) for each in left))
        return [each for each in removed if isinstance(each, ServiceError)]
