"""A configuration file of the official emulators as values: namespaces, hubs, queues, topics, rules.

None means that the file does not say; who makes the entity has the default. Every value names its place, so that
whoever finds out later that it cannot be (a partition count that differs from the catalog's) can say where it stands;
places and keys take no part in comparisons. Names are kept as written, and are unique whatever their case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hubweir.config.problems import Location, Problem
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret


class Root(Enum):
    """Which of the two members of UserConfig a namespace stands in."""

    EVENT_HUBS = "NamespaceConfig"
    SERVICE_BUS = "Namespaces"


class Sku(Enum):
    """The tier of a namespace."""

    BASIC = "Basic"
    STANDARD = "Standard"
    PREMIUM = "Premium"


class Status(Enum):
    """Whether an entity takes events, gives events, or both."""

    ACTIVE = "Active"
    DISABLED = "Disabled"
    SEND_DISABLED = "SendDisabled"
    RECEIVE_DISABLED = "ReceiveDisabled"


class CleanupPolicy(Enum):
    """How a hub forgets: by age, and nothing else is served."""

    DELETE = "Delete"


class CaptureEncoding(Enum):
    """The form of captured files."""

    AVRO = "Avro"
    AVRO_DEFLATE = "AvroDeflate"


class FilterType(Enum):
    """Which of the two filters of a rule is used."""

    CORRELATION = "Correlation"
    SQL = "Sql"


class LogTarget(Enum):
    """Where the log goes."""

    FILE = "File"
    CONSOLE = "Console"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRuleConfig:
    """A named pair of keys and what they allow. A key that is None is for the service to make."""

    name: str
    rights: Rights
    primary: Secret | None = field(compare=False, repr=False)
    secondary: Secret | None = field(compare=False, repr=False)
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureConfig:
    """Capture of one hub. account and container: of the destination; properties as ARM names them."""

    enabled: bool
    encoding: CaptureEncoding | None
    interval_s: int | None
    size_limit_bytes: int | None
    skip_empty_archives: bool | None
    destination_name: str | None
    storage_account_resource_id: str | None
    blob_container: str | None
    archive_name_format: str | None
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubConfig:
    """One event hub. consumer_groups are those besides $Default, which always exists."""

    name: str
    partition_count: int
    consumer_groups: tuple[str, ...]
    retention_ms: int | None
    cleanup_policy: CleanupPolicy | None
    status: Status | None
    user_metadata: str | None
    rules: tuple[AuthorizationRuleConfig, ...]
    capture: CaptureConfig | None
    location: Location = field(compare=False, repr=False)
    # Of the partition count, which cannot change once the hub exists.
    partition_count_location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagingProperties:
    """Properties of a queue, a topic or a subscription; those that a kind of entity does not have stay None.

    An empty ForwardTo or ForwardDeadLetteredMessagesTo means none, and is None here.
    """

    dead_lettering_on_message_expiration: bool | None = None
    default_message_time_to_live: WrittenDuration | None = None
    duplicate_detection_history_time_window: WrittenDuration | None = None
    forward_dead_lettered_messages_to: str | None = None
    forward_to: str | None = None
    lock_duration: WrittenDuration | None = None
    max_delivery_count: int | None = None
    requires_duplicate_detection: bool | None = None
    requires_session: bool | None = None
    # Extensions: not in the official files.
    enable_partitioning: bool | None = None
    max_size_in_megabytes: int | None = None
    max_message_size_in_kilobytes: int | None = None
    auto_delete_on_idle: WrittenDuration | None = None
    status: Status | None = None
    user_metadata: str | None = None
    enable_batched_operations: bool | None = None
    support_ordering: bool | None = None
    rules: tuple[AuthorizationRuleConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationFilterConfig:
    """Equality on each of these that is not None, and on each user property."""

    content_type: str | None
    correlation_id: str | None
    label: str | None
    message_id: str | None
    reply_to: str | None
    reply_to_session_id: str | None
    session_id: str | None
    to: str | None
    properties: tuple[tuple[str, str | int | float | bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleConfig:
    """A rule of a subscription: the filter that filter_type names is there; action is the text of an SQL action."""

    name: str
    filter_type: FilterType
    correlation_filter: CorrelationFilterConfig | None
    sql_expression: str | None
    action: str | None
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionConfig:
    """A subscription. No rules: it gets every message; one or more replace that."""

    name: str
    properties: MessagingProperties
    rules: tuple[RuleConfig, ...]
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """A queue."""

    name: str
    properties: MessagingProperties
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """A topic with its subscriptions."""

    name: str
    properties: MessagingProperties
    subscriptions: tuple[SubscriptionConfig, ...]
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceConfig:
    """One namespace. hostnames in lower case, each of one namespace only; hubs under one root, queues and topics
    under the other, both in one that stands under both. root: the one that it was first found under."""

    root: Root
    name: str
    sku: Sku | None
    hostnames: tuple[str, ...]
    throughput_units: int | None
    maximum_throughput_units: int | None
    is_auto_inflate_enabled: bool | None
    premium_messaging_partitions: int | None
    rules: tuple[AuthorizationRuleConfig, ...]
    hubs: tuple[HubConfig, ...] = ()
    queues: tuple[QueueConfig, ...] = ()
    topics: tuple[TopicConfig, ...] = ()
    location: Location = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorConfig:
    """All that was read from one or several files. log_targets: empty when no file says."""

    files: tuple[str, ...]
    namespaces: tuple[NamespaceConfig, ...]
    log_targets: tuple[LogTarget, ...]
    warnings: tuple[Problem, ...] = field(compare=False)
