"""What the settings say to each part of a service."""

from __future__ import annotations

import pytest

from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.namespaces_at_start import namespaces_at_start
from hubweir.config.settings import BadSetting, Settings
from hubweir.gateway.http.metrics_page import MetricsAccess
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.tiers import PROFILES
from hubweir.service.part_settings import gateway_settings, metrics_access


def test_each_gateway_has_the_quotas_and_the_host_of_its_namespace() -> None:
    settings = Settings(hostname=("plain.example",), further_namespace=("large=large.example",), profile="basic")
    default, large = namespaces_at_start(said_namespaces(settings)).namespaces
    hosts = HostNames(frozenset())
    values = gateway_settings(settings, default, hosts, None)
    assert (values.namespace, values.host_name, values.profile) == ("hubweir", "plain.example", PROFILES["basic"])
    values = gateway_settings(settings, large, hosts, None)
    assert (values.namespace, values.host_name, values.profile) == ("large", "large.example", PROFILES["basic"])


@pytest.mark.parametrize(
    ("said", "hosts", "access"),
    [
        ("auto", ("127.0.0.1",), MetricsAccess.OPEN),
        ("auto", ("127.0.0.1", "::1", "localhost"), MetricsAccess.OPEN),
        ("auto", ("127.0.0.1", "0.0.0.0"), MetricsAccess.TOKEN),
        ("auto", ("192.0.2.1",), MetricsAccess.TOKEN),
        ("open", ("0.0.0.0",), MetricsAccess.OPEN),
        ("token", ("127.0.0.1",), MetricsAccess.TOKEN),
        ("off", ("127.0.0.1",), None),
    ],
)
def test_metrics_are_open_by_themselves_on_this_machine_alone(
    said: str, hosts: tuple[str, ...], access: MetricsAccess | None
) -> None:
    assert metrics_access(Settings(metrics=said, host=hosts)) is access


def test_metrics_have_no_other_access() -> None:
    with pytest.raises(BadSetting, match="metrics is 'public'; auto, off, open and token exist"):
        Settings(metrics="public")
