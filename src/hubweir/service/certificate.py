"""The certificate that a service shows: the operator's, or one for development, made for the names that lead here."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import Settings, TlsSettings
from hubweir.drivers.development_certificate import development_certificate
from hubweir.drivers.tls import CertificateFiles, server_context
from hubweir.service.data_folder import TLS_FOLDER

ReadCertificate: TypeAlias = tuple[CertificateFiles, ssl.SSLContext]


class ServiceCertificate:
    """See the module's text. files: where it lies. tls: with what was read first."""

    def __init__(self, settings: Settings, namespaces: Iterable[NamespaceSettings], *, is_owner: bool = True) -> None:
        """Reads it, as `read` does. is_owner: False in a process beside the one that makes a development certificate
        for the names that there are: one with names that are gone is good enough here.
        """
        self._settings: TlsSettings = settings
        self._hosts = settings.host
        self._folder = Path(settings.data) / TLS_FOLDER
        self._is_owner = is_owner
        self._names = list(self._names_of(namespaces))
        self.files, self.tls = self.read()

    def go_by(self, settings: TlsSettings) -> None:
        """`read` looks where these say from now on."""
        self._settings = settings

    def name(self, namespaces: Iterable[NamespaceSettings]) -> bool:
        """These are served now; whether `read` has another certificate for them. Names that went do no harm."""
        names = list(self._names_of(namespaces))
        if self._settings.tls_cert or set(names) <= set(self._names):
            return False
        self._names = names
        return True

    def read(self) -> ReadCertificate:
        """Where the files lie, and TLS with what is in them now. Blocks. Raises BadCertificate, OSError.

        A development certificate is made, or remade, when it has to be (drivers/development_certificate.py).
        """
        settings = self._settings
        if settings.tls_cert:
            files = CertificateFiles(Path(settings.tls_cert), Path(settings.tls_key))
        else:
            now = datetime.datetime.now(datetime.UTC)
            files = development_certificate(self._folder, self._names, now, keeps_more=not self._is_owner)
        return files, server_context(files, Path(settings.tls_client_ca) if settings.tls_client_ca else None)

    def _names_of(self, namespaces: Iterable[NamespaceSettings]) -> dict[str, None]:
        """The names and addresses that a development certificate is for, each once."""
        names = dict.fromkeys(("localhost", "127.0.0.1", *self._hosts))
        for each in namespaces:
            names.update(dict.fromkeys(each.hostnames if each.is_default else (each.host_name, *each.hostnames)))
        return names
