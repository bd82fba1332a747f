"""The context of a change of the namespace: what the change is judged against, besides what it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.tiers import Profile


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """profile: whose quotas hold. host: how texts name the namespace. now_ms: since 1970.

    partitions_limit: of an event hub that is made; those that are there keep theirs. capture_account: the storage
    account that captured files may go to, or empty. takes_messages: whether a queue or a topic of that name, in any
    case, is there and stays.
    """

    profile: Profile
    host: str
    partitions_limit: int
    capture_account: str
    now_ms: int
    takes_messages: Callable[[str], bool] = lambda _: False

    def not_found(self, path: str) -> ServiceError:
        """NOT_FOUND with the text that clients match. path: of what is not there."""
        return ServiceError(NOT_FOUND, entity_not_found(entity_uri(self.host, path)))
