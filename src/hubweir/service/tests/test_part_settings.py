"""What the settings say to each part of a service."""

from __future__ import annotations

from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.namespaces_at_start import namespaces_at_start
from hubweir.config.settings import Settings
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.tiers import PROFILES
from hubweir.service.part_settings import gateway_settings


def test_each_gateway_has_the_quotas_and_the_host_of_its_namespace() -> None:
    settings = Settings(hostname=("plain.example",), further_namespace=("large=large.example",), profile="basic")
    default, large = namespaces_at_start(said_namespaces(settings)).namespaces
    hosts = HostNames(frozenset())
    values = gateway_settings(settings, default, hosts, None)
    assert (values.namespace, values.host_name, values.profile) == ("hubweir", "plain.example", PROFILES["basic"])
    values = gateway_settings(settings, large, hosts, None)
    assert (values.namespace, values.host_name, values.profile) == ("large", "large.example", PROFILES["basic"])
