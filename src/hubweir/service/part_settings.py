"""What the settings of a service say to each of its parts: logs, capture, gateways."""

from __future__ import annotations

from functools import cache, partial

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.broker.capture.blob_upload import BlobContainer, StorageAccount, parse_storage
from hubweir.broker.capture.places import CapturePlaces, CaptureQuota
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import ROOT_RULE, Settings
from hubweir.env import Files
from hubweir.gateway.settings import GatewaySettings
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.tiers import OFFICIAL_EMULATOR, PROFILES
from hubweir.service.data_folder import CAPTURE_FOLDER


def log_settings(settings: Settings) -> LogSettings:
    """Of every partition's log."""
    return LogSettings(
        segment_bytes=settings.log_segment_bytes,
        tail_bytes=settings.log_tail_bytes,
        queue_bytes=settings.log_queue_bytes,
    )


def capture_places(settings: Settings, files: Files) -> CapturePlaces:
    """Where captured files may go. files: of the data folder.

    OSError when the folder cannot be, BadStorage when the storage account's connection string is none.
    """
    account = _storage_account(settings)
    return CapturePlaces(
        files=SystemFiles(settings.capture_folder) if settings.capture_folder else files,
        folder="" if settings.capture_folder else CAPTURE_FOLDER,
        containers=None if account is None else cache(partial(BlobContainer, account)),
        quota=CaptureQuota(settings.capture_backlog_bytes, settings.capture_backlog_ms),
    )


def capture_account(settings: Settings) -> str:
    """The name of the storage account that captured files may go to; "" for none. BadStorage as capture_places."""
    account = _storage_account(settings)
    return "" if account is None else account.name


def _storage_account(settings: Settings) -> StorageAccount | None:
    return parse_storage(settings.capture_storage) if settings.capture_storage else None


def gateway_settings(
    settings: Settings, wanted: NamespaceSettings, hosts: HostNames, issuer: IssuerKeys | None
) -> GatewaySettings:
    """Of one namespace's gateway, with the quotas of its profile."""
    profile = PROFILES[wanted.profile]
    return GatewaySettings(
        namespace=wanted.name,
        host_name=(wanted.hostnames or settings.host)[0] if wanted.is_default else wanted.host_name,
        hosts=hosts,
        settings_rule=ROOT_RULE,
        issuer=issuer,
        max_frame_size_bytes=settings.max_frame_size_bytes,
        max_message_size_bytes=min(
            settings.max_message_size_bytes,
            settings.max_message_size_bytes if profile.connections is None else profile.message_size_bytes,
        ),
        connections_max=profile.connections,
        management_reads_per_second=profile.management_reads_per_second,
        # Its clients come from other containers, and have no TLS.
        plain_without_tls=settings.plain_without_tls or settings.profile == OFFICIAL_EMULATOR.name,
        partition_cap=settings.partition_cap,
        max_throughput_units=settings.max_throughput_units,
        idle_timeout_ms=settings.idle_timeout_ms,
        unauthorized_connection_ms=settings.unauthorized_connection_ms,
        idle_link_ms=settings.idle_link_ms,
        connection_budget_bytes=settings.connection_budget_bytes,
        process_budget_bytes=settings.process_budget_bytes,
    )
