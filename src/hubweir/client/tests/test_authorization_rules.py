from __future__ import annotations

import pytest

from hubweir.client.authorization_rules import AuthorizationRules, RuleInfo
from hubweir.client.connection import Connection
from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace


@pytest.mark.parametrize("level", ["namespace", "hub"])
def test_a_rule_lives_from_create_to_delete(namespace: RunningNamespace, level: str) -> None:
    hub = ""
    if level == "hub":
        hub = namespace.create_event_hub("ruled").name

    async def scenario() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        rules = AuthorizationRules(connection)
        made = await rules.create_rule("Mine", ("Send",), hub, secondary="given")
        assert (made.name, made.rights, made.secondary.reveal()) == ("Mine", ("Send",), "given")
        assert len(made.primary.reveal()) == 44
        assert "given" not in repr(made)
        assert made.primary.reveal() not in repr(made)
        with pytest.raises(ServiceError) as twice:
            await rules.create_rule("MINE", ("Send",), hub)
        assert twice.value.condition is ENTITY_EXISTS
        assert RuleInfo("Mine", ("Send",)) in await rules.list_rules(hub)
        assert await rules.change_rule("mine", ("Listen", "Send"), hub) == RuleInfo("Mine", ("Listen", "Send"))
        assert await rules.rule("mine", hub) == RuleInfo("Mine", ("Listen", "Send"))
        renewed = await rules.renew_key("mine", "primary", hub)
        assert renewed.primary.reveal() not in ("", made.primary.reveal())
        assert (await rules.renew_key("mine", "secondary", hub, value="mine too")).secondary.reveal() == "mine too"
        assert (await rules.keys("mine", hub)).primary.reveal() == renewed.primary.reveal()
        await rules.delete_rule("mine", hub)
        with pytest.raises(ServiceError) as gone:
            await rules.keys("mine", hub)
        assert gone.value.condition is NOT_FOUND
        await connection.close()

    run_on("asyncio", scenario())
