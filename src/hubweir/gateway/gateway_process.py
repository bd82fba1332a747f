"""The gateways of one process, what they share, and the choice between them: one a namespace, the default first.

A peer names a host: in SASL, in `open`, in the Host header. A name that was given to a namespace (namespace/
host_names.py) leads there. Any other (an address, localhost) leaves it open, and the first token that is taken decides
then: a token belongs to the namespace of the host that it was made for; where that is nobody's, to the first namespace
whose rule signed it. One that nobody signed is refused by the first that has a rule of its name, else by the default
one. No namespace takes a token that belongs to another.

Shared are the brokers, counters, alarms, and budgets of bytes; the connections too (amqp/connections.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from hubweir.alarms import Alarms
from hubweir.auth.refusal import AuthRefused
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature, is_signature
from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.command import Answer
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.gateway import AskOther, Gateway, SharedProcess
from hubweir.gateway.held_runs import HeldRuns
from hubweir.gateway.namespace_management import NamespaceManagement
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.gateway.receive_slots import ReceiveSlots
from hubweir.gateway.service_orders import Orders
from hubweir.gateway.settings import LinkSettings
from hubweir.gateway.tracing import Tracer
from hubweir.gateway.transaction_endings import TransactionEndings
from hubweir.limits import GatewayLimits
from hubweir.namespace.host_names import HostNames, bare_host
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import IllegalPath
from hubweir.namespace.secret import Secret
from hubweir.namespace.topic_description import TopicDescription

# What turns may produce beyond their least, all connections together: seventeen that catch up at full speed.
LARGE_TURNS_BYTES = 16 * 1024 * 1024
# Of rules that hold for a whole namespace.
_EVERYWHERE = Scope("", ())


async def _nobody(index: int, command: ProcessCommand) -> Answer | None:
    return None


class GatewayProcess(SharedProcess):
    """See the module's text. process_id tells this process's readers from those of others at a broker."""

    def __init__(
        self,
        env: Env,
        brokers: Brokers,
        *,
        limits: GatewayLimits,
        link_settings: LinkSettings | None = None,
        counters: Counters | None = None,
        alarms: Alarms | None = None,
        process_id: int = 0,
        tracer: Tracer | None = None,
        own_orders: ProcessOrders | None = None,
    ) -> None:
        self.env = env
        self.brokers = brokers
        self.counters = counters if counters is not None else Counters()
        self.alarms = alarms if alarms is not None else Alarms(env, self.counters)
        self.process_id = process_id
        self.tracer = tracer  # of what clients trace; None: nothing is looked at
        self.limits = limits
        self.link_settings = link_settings or LinkSettings()
        self.budget = ProcessBudget(limits.process_budget_bytes)
        # What open transactions hold is held for minutes: what is left of the budget serves everybody else.
        self.transactions_budget = ProcessBudget(limits.process_budget_bytes // 4)
        self.transaction_endings = TransactionEndings(brokers, process_id, self.has_log)
        self.held_runs = HeldRuns()
        self.large_turns = HeldRuns(LARGE_TURNS_BYTES)
        self.receive_slots = ReceiveSlots()
        self.gateways: list[Gateway] = []
        # The way to the supervisor of several processes; None: there is none.
        self.supervisor: BrokerClient | None = None
        # Where tests of clients give their orders, and what of those this process does; None: nothing takes any.
        self.orders: Orders | None = None
        self.own_orders = own_orders
        self.processes = 1  # of the service, with this one: that of store i is i modulo their number
        self.index = 0  # of this one among them
        self.ask_other: AskOther = _nobody  # until there are others
        # What makes and deletes namespaces while the process runs; None: nothing does.
        self.namespaces: NamespaceManagement | None = None
        self.has_all = True  # False as long as namespaces are missing that this process is to serve

    def add_gateway(self, gateway: Gateway) -> None:
        self.gateways.append(gateway)
        if self.own_orders is not None:
            self.own_orders.came(gateway)

    def remove_gateway(self, gateway: Gateway) -> None:
        """A namespace is served no more: its connections end, and no peer is led to it."""
        self.gateways.remove(gateway)
        if self.own_orders is not None:
            self.own_orders.left(gateway)
        gateway.end()

    def lead(self, hosts: Mapping[str, HostNames]) -> None:
        """Namespaces came or went: these hosts lead to each, by its name."""
        for gateway in self.gateways:
            gateway.lead_here(hosts[gateway.settings.namespace])

    def has_log(self, log_id: str) -> bool:
        """Whether a queue or a topic of any namespace has a log of this id, or may have: where catalogs are not known
        here, or not as they are now, nobody can say that it is gone.
        """
        if not self.has_all or not all(gateway.keeper.is_current for gateway in self.gateways):
            return True
        return any(
            placement.log_id == log_id
            for gateway in self.gateways
            for kind in (QueueDescription, TopicDescription)
            for entity in gateway.namespace.entities(kind)
            for placement in entity.placements
        )

    # Whom a peer means

    @property
    def default(self) -> Gateway:
        """The namespace for connections that name none."""
        return self.gateways[0]

    def named(self, host: str) -> Gateway | None:
        """The namespace that a host, as a peer wrote it, leads to; None: it leads nowhere."""
        name = bare_host(host)
        return next((gateway for gateway in self.gateways if name in gateway.hosts.names), None)

    def of_rule(self, name: str, scope: Scope = _EVERYWHERE) -> Gateway:
        """The namespace that a rule belongs to where no host tells: the first that has it at the scope's path."""
        having = (gateway for gateway in self.gateways if gateway.authorization.has_rule(name, scope))
        return next(having, self.default)

    def of_key(self, name: str, key: Secret) -> Gateway:
        """The namespace of a rule whose key a peer shows: the first that has it, else as of_rule."""
        # All are asked in any case: the time does not tell which one knows the key.
        having = [gateway for gateway in self.gateways if gateway.authorization.has_key(name, key)]
        return having[0] if having else self.of_rule(name)

    def of_signature(self, token: SharedAccessSignature) -> Gateway:
        named = self.named(token.scope.host)
        if named is not None or len(self.gateways) == 1:
            return named or self.default
        signed = [gateway for gateway in self.gateways if gateway.authorization.has_signed(token)]
        return signed[0] if signed else self.of_rule(token.rule_name, token.scope)

    def of_token(self, token: str, audience: str = "") -> Gateway:
        """As of_signature, of a text. audience: a URI that decides for tokens without a host (JSON Web Tokens)."""
        if is_signature(token):
            try:
                signature = SharedAccessSignature.parse(token, bare_hosts=self._hosts())
            except AuthRefused:
                return self.default  # which will say why
            return self.of_signature(signature)
        try:
            return self.named(Scope.parse(audience).host) or self.default
        except IllegalPath:
            return self.default

    def _hosts(self) -> frozenset[str]:
        return frozenset(host for gateway in self.gateways for host in gateway.hosts.all)
