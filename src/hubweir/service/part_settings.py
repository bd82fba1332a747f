"""Translates the settings of a service for each of its parts: logs, capture, gateways."""

from __future__ import annotations

from functools import cache, partial

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.broker.capture.blob_upload import BlobContainer, StorageAccount, parse_storage
from hubweir.broker.capture.places import CapturePlaces, CaptureQuota
from hubweir.config.development_key import is_loopback
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import ROOT_RULE, CaptureSettings, DoorSettings, Settings
from hubweir.env import Files
from hubweir.gateway.http.metrics_page import MetricsAccess
from hubweir.gateway.settings import GatewaySettings
from hubweir.limits import StoreLimits
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.tiers import OFFICIAL_EMULATOR, PROFILES
from hubweir.service.data_folder import CAPTURE_FOLDER


def log_settings(settings: StoreLimits) -> LogSettings:
    """Of every partition's log."""
    return LogSettings(
        segment_bytes=settings.log_segment_bytes,
        tail_bytes=settings.log_tail_bytes,
        queue_bytes=settings.log_queue_bytes,
    )


def capture_places(settings: CaptureSettings, files: Files) -> CapturePlaces:
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


def capture_account(settings: CaptureSettings) -> str:
    """The name of the storage account that captured files may go to; "" for none. BadStorage as capture_places."""
    account = _storage_account(settings)
    return "" if account is None else account.name


def _storage_account(settings: CaptureSettings) -> StorageAccount | None:
    return parse_storage(settings.capture_storage) if settings.capture_storage else None


def metrics_access(settings: DoorSettings) -> MetricsAccess | None:
    """Who may read /metrics; None: nobody, there is no such page."""
    if settings.metrics == "off":
        return None
    is_alone = settings.metrics == "auto" and all(map(is_loopback, settings.host))
    return MetricsAccess.OPEN if is_alone or settings.metrics == "open" else MetricsAccess.TOKEN


def gateway_settings(
    settings: Settings, wanted: NamespaceSettings, hosts: HostNames, issuer: IssuerKeys | None
) -> GatewaySettings:
    """Of one namespace's gateway, besides the limits that the whole process keeps."""
    return GatewaySettings(
        namespace=wanted.name,
        host_name=(wanted.hostnames or settings.host)[0] if wanted.is_default else wanted.host_name,
        hosts=hosts,
        profile=PROFILES[wanted.profile],
        settings_rule="" if wanted.is_made_running else ROOT_RULE,
        issuer=issuer,
        # Its clients come from other containers, and have no TLS.
        lone_receives=settings.lone_receives,
        plain_without_tls=settings.plain_without_tls or settings.profile == OFFICIAL_EMULATOR.name,
    )
