"""A copy of a catalog whose writer is another process: made from its snapshot, then one operation at a time.

Whoever reads the namespace here is told of changes as those in the writer's process are (Namespace.on_change). When
the copy is made again, behind changes that it missed, they are told of each entity that differs. A copy is never kept:
after a crash the process follows anew.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.errors import CorruptStore
from hubweir.namespace.catalog import Catalog, StoredEntity
from hubweir.namespace.catalog_operation import CommitDelete, PutRule, RemoveRule, decode_operation, encode
from hubweir.namespace.entity import AnyEntity
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.tiers import Profile


class FollowedCatalog:
    """See the module's text. namespace: what everybody else reads, empty before the first snapshot.

    on_removed: called with each entity that is gone, before the namespace tells of it.
    """

    def __init__(self, *, profile: Profile, host: str) -> None:
        self._catalog = Catalog()
        self.namespace = Namespace(self._catalog, profile=profile, host=host)
        self.on_removed: Callable[[AnyEntity], None] = _nothing

    @property
    def version(self) -> int:
        """Of the newest operation that was applied."""
        return self._catalog.version

    def restore(self, snapshot: bytes) -> None:
        """Take the whole catalog anew (Catalog.snapshot). Raises what Catalog.restore raises, and changes nothing."""
        old, new = self._catalog, Catalog.restore(snapshot)
        self._catalog = new
        self.namespace.read_from(new)
        if old.version == new.version:
            return
        for entity in old.entities():
            if new.get(entity.entity_id) is None:
                self.on_removed(entity)
        for name in ("", *_differing(old, new)):
            new.newest = name
            self.namespace.changed()

    def apply(self, version: int, operation: bytes) -> None:
        """Apply the operation that made this version of the catalog, and tell whoever reads the namespace.

        Raises CorruptStore when it is not the next one or does not fit: the copy is no good any more. NewerFormat and
        OldFormat as of a log.
        """
        if version != self.version + 1:
            text = f"the copy of a catalog has version {self.version} and is told what makes {version}"
            raise CorruptStore(text)
        decoded = decode_operation(operation)
        if isinstance(decoded, CommitDelete):
            gone = self._catalog.get(decoded.entity_id)
            for entity in () if gone is None else (*self._catalog.inside(gone.name), gone):
                self.on_removed(entity)
        self._catalog.apply(decoded)
        # As the writer does: no connection stands on a rule of a subscription.
        if not isinstance(decoded, PutRule | RemoveRule):
            self.namespace.changed()


def _differing(old: Catalog, new: Catalog) -> list[str]:
    """The names of entities that are not the same in both, whether they came, went or changed."""
    before, now = ({each.entity_id: each for each in catalog.entities()} for catalog in (old, new))
    differing = [entity.name for entity_id, entity in before.items() if _bytes(entity) != _bytes(now.get(entity_id))]
    return list(dict.fromkeys([*differing, *(each.name for entity_id, each in now.items() if entity_id not in before)]))


def _bytes(entity: StoredEntity | None) -> bytes:
    """What an entity is as the catalog keeps it: keys are not compared as they are (rule R22)."""
    return b"" if entity is None else encode(entity)


def _nothing(entity: AnyEntity) -> None:
    """Nobody holds anything of it."""
