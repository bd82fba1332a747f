"""Makes and deletes namespaces while a service runs, in the process that keeps their catalogs.

Making: names and hosts are judged → a catalog, with one record that says all of the namespace → its gateway → every
process follows it → whoever asked is told. A crash before the record leaves no namespace; after it the namespace is
there, as each start finds it. Deleting: its catalog says so → no process serves it → its entities with their logs go,
then its catalog (namespace_removal.py). A crash after the first step is carried on by the next start.

A namespace of a backup is taken in as one that is made, when its catalog and its logs are there (running_restores.py).

Long because whatever is served is judged against all that is, in one turn: a second writer could not see it.

Other processes follow the list of namespaces as they follow catalogs (namespace/catalog_followers.py): a change is
answered when each of them has applied it, or is dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hubweir.auth.authorization_rule import KEY_BYTES, new_key
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.config.development_key import check_development_key
from hubweir.config.namespace_settings import SaidNamespaces
from hubweir.config.namespaces_at_start import (
    NamespaceSettings,
    hosts_of,
    namespaces_at_start,
    restored_namespace,
)
from hubweir.config.settings import ROOT_RULE, BadSetting, Settings
from hubweir.drivers.tasks import Tasks
from hubweir.env import Env
from hubweir.errors import (
    ARGUMENT_ERROR,
    ENTITY_EXISTS,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    NOT_FOUND,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    STORE_OFFLINE,
    HubweirError,
    ServiceError,
)
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.namespace_management import NewNamespace, RestoreState
from hubweir.gateway.namespace_units import checked_units
from hubweir.namespace.catalog_followers import CatalogFollowers
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.names import check_host_name, check_namespace_name
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription, check_rule
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import PROFILES
from hubweir.service.backup import BackedUp
from hubweir.service.completions import done
from hubweir.service.data_folder import store_folder
from hubweir.service.gateway_start import start_gateway
from hubweir.service.namespace_removal import NamespaceRemoval
from hubweir.service.part_settings import capture_account, gateway_settings
from hubweir.service.running_restores import RunningRestores
from hubweir.service.stored_namespaces import StoredCatalog, StoredNamespaces
from hubweir.service.taken_settings import SettingOutcome, change_namespace, take_entities
from hubweir.service.told_namespaces import encode_namespaces
from hubweir.service_log import NAMESPACE_CREATED, NAMESPACE_DELETED

logger = logging.getLogger(__name__)

# Each has a log of its own with open files, and a token that names no host is tried with the keys of each.
NAMESPACES_LIMIT = 250
EVERYTHING = "all of it is gone"


class ServedNamespaces:
    """See the module's text. Of one service; all on its loop. One namespace is made or marked at a time.

    namespaces: as they are served, the default one first. prepare: makes what another process is to find when it hears
    of them: the certificate. on_change: called with them when they are others. followers, version: of the list.
    """

    def __init__(
        self,
        env: Env,
        settings: Settings,
        process: GatewayProcess,
        stored: StoredNamespaces,
        issuer: IssuerKeys | None,
        namespaces: tuple[NamespaceSettings, ...],
        *,
        prepare: Callable[[tuple[NamespaceSettings, ...]], Awaitable[None]],
        on_change: Callable[[tuple[NamespaceSettings, ...]], None],
    ) -> None:
        self._env = env
        self._settings = settings
        self._process = process
        self._stored = stored
        self._issuer = issuer
        self.namespaces = namespaces
        self._prepare = prepare
        self._on_change = on_change
        self._turn = asyncio.Lock()
        self._is_stopping = False
        self._tasks = Tasks("namespaces")
        self._removals: list[NamespaceRemoval] = []  # that are not over
        self._restores = RunningRestores(settings.data, process.brokers, stored.raise_epoch, self)
        self.version = 0
        self.followers = CatalogFollowers(env)

    def carry_on(self) -> None:
        """Go on with deletions that a crash interrupted: gateways are there, and so are brokers."""
        for catalog in self._stored.deleting:
            name = catalog.loaded.catalog.namespace.name
            writer = CatalogWriter(catalog.log, self._env, catalog.loaded, host=name)
            keeper = CatalogKeeper(writer, self._process.brokers, self._env)
            removal = NamespaceRemoval(self._stored, catalog, keeper, writer.namespace)
            self._removals.append(removal)
            self._tasks.start(self._carry_on(removal, name), name=f"deletion of namespace {name}")

    async def stop(self) -> None:
        """Begin nothing more, and give up what is under way: the next start carries on."""
        self._is_stopping = True
        await self._restores.stop()
        await self._tasks.stop()

    # What may be asked for (gateway/namespace_management.py)

    async def create(self, wanted: NewNamespace) -> None:
        self.check_goes_on("create the namespace")
        await self._whole(self._create(wanted), name=f"creation of namespace {wanted.name}")

    async def delete(self, name: str) -> None:
        self.check_goes_on("delete the namespace")
        await self._whole(self._delete(name), name=f"deletion of namespace {name}")

    async def restore(self, name: str, source: str) -> None:
        await self._restores.begin(name, source)

    async def restore_state(self, name: str) -> RestoreState:
        return self._restores.state(name)

    async def _whole(self, step: Coroutine[Any, Any, None], *, name: str) -> None:
        """Do all of a step, also when whoever asked for it goes away in the middle.

        A refusal comes when every process serves what it was judged against: so whoever hears it may look.
        """
        ended: asyncio.Future[ServiceError | None] = asyncio.get_running_loop().create_future()

        def end(refusal: ServiceError | None) -> None:
            if not ended.done():
                ended.set_result(refusal)

        async def run() -> None:
            try:
                await step
            except ServiceError as refusal:
                end(refusal)
            except BaseException:
                end(
                    ServiceError(
                        INTERNAL_ERROR, "The service stops, or failed: what is half done, the next start ends."
                    )
                )
                raise
            else:
                end(None)

        self._tasks.start(run(), name=name)
        refusal = await ended
        if refusal is not None:
            await self._followed()
            raise refusal

    async def _create(self, wanted: NewNamespace) -> None:
        async with self._turn:
            gateway = await self._add(self._judged(wanted))
        _say_created(gateway)
        await self._followed()

    async def go_by(self, said: SaidNamespaces) -> list[SettingOutcome]:
        """What the sources of settings say of namespaces now: what may change while they are served, changes.

        A namespace that is new is made. Nothing is removed, as by a start. BadSetting when what is said cannot be;
        ServiceError SERVER_BUSY when the service stops.
        """
        async with self._turn:
            self.check_goes_on("have it read its settings")
            known = [gateway.namespace.description for gateway in self._process.gateways]
            wanted = namespaces_at_start(said, known).namespaces
            check_development_key(self._settings, [each.key for each in wanted])
            taken: list[SettingOutcome] = []
            for each in wanted:
                taken += await self._taken(each)
        await self._followed()
        return taken

    async def _delete(self, name: str) -> None:
        async with self._turn:
            gateway = self._found(name)
            keeper = _keeper(gateway)
            await answer_of(partial(keeper.describe, lambda known: replace(known, is_deleting=True)))
            # No process follows it from here on, and so none is waited for while its entities go.
            keeper.followers.all_gone()
            catalog = self._stored.take_catalog(gateway.settings.namespace)
            left = tuple(each for each in self.namespaces if each.name != gateway.settings.namespace)
            self._process.remove_gateway(gateway)
            self._serve(left, self._hosts(left))
        await self._followed()
        await self._removed(gateway, keeper, catalog)

    # What restores ask of it (running_restores.py)

    def check_goes_on(self, what: str) -> None:
        """ServiceError behind the stop: nobody would end what begins then before the catalogs are closed."""
        if self._is_stopping:
            raise ServiceError(SERVER_BUSY, f"The service stops: {what} when it runs again.")

    def judge(self, namespace: BackedUp) -> None:
        new = restored_namespace(namespace.description)
        self._check_place(new.name)
        self._check_key(new.key)
        self._hosts((*self.namespaces, new))
        served = [gateway.namespace for gateway in self._process.gateways]
        for each in (*served, *(removal.namespace for removal in self._removals)):
            if any(each.owner_of(log.log_id) is not None for log in namespace.logs):
                name, is_served = each.description.name, each in served
                how = "is served, and has the logs of this backup" if is_served else "is being deleted"
                raise ServiceError(ENTITY_EXISTS, f"The namespace '{name}' {how}: restore behind its deletion.")
        stores = {log.store for log in namespace.logs} - set(map(store_folder, range(len(self._process.brokers))))
        if stores:
            text = f"The backup has logs in {min(stores)}, and the service has {len(self._process.brokers)} stores: "
            raise ServiceError(NOT_ALLOWED, f"{text}start it with more (`--stores`), then restore.")
        away = {log.store for log in namespace.logs} & set(map(store_folder, self._process.brokers.away))
        if away:
            text = f"The backup has logs in {min(away)}, which is away"
            raise ServiceError(STORE_OFFLINE, f"{text}: restore when it is there again (`hubweir status`).")

    async def take_in(self, namespace: BackedUp, show: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            self.judge(namespace)
            await self._keep_default(namespace.description)
            await show()
            await self._stored.take_in(namespace.catalog_id, [log.log_id for log in namespace.logs])
            gateway = await self._add(restored_namespace(namespace.description))
        _say_created(gateway)
        await self._followed()

    async def _keep_default(self, new: NamespaceDescription) -> None:
        """The default namespace stays that, whatever rank the one of a backup had in its folder."""
        default = self._process.default
        if new.default_rank >= default.namespace.description.default_rank:
            rank = new.default_rank + 1
            await answer_of(partial(_keeper(default).describe, lambda known: replace(known, default_rank=rank)))

    # Inside

    async def _taken(self, wanted: NamespaceSettings) -> list[SettingOutcome]:
        """What became of what is said of one namespace."""
        gateways = self._process.gateways
        known = next((each for each in gateways if each.settings.namespace == wanted.stored_name), None)
        if known is None and wanted.is_default:
            return [SettingOutcome("the default namespace", f"stays {self.namespaces[0].name}", wanted.name)]
        taken = []
        if known is None:
            new = replace(wanted, entities=None)
            gateway = await self._add(new)
            taken.append(SettingOutcome(f"namespace {new.name}", "is new"))
        else:
            gateway = known
            taken += await change_namespace(gateway, wanted)
            self.namespaces = tuple(
                replace(each, key=wanted.key) if each.name == wanted.stored_name else each for each in self.namespaces
            )
            self._on_change(self.namespaces)
        if wanted.entities is not None:
            taken += await take_entities(gateway, wanted.entities)
        return taken

    def _judged(self, wanted: NewNamespace) -> NamespaceSettings:
        """What a new namespace is to be; ServiceError when it cannot be."""
        default, name = self.namespaces[0], check_namespace_name(wanted.name)
        self._check_place(name)
        profile = fold(wanted.profile) or default.profile
        if profile not in PROFILES:
            text = f"There is no profile '{wanted.profile[:64]}': {', '.join(PROFILES)} exist."
            raise ServiceError(ARGUMENT_ERROR, text)
        units, maximum = wanted.throughput_units, wanted.maximum_throughput_units
        checked_units(name, UnitsDescription(units, maximum), self._settings)
        key = wanted.key or new_key(self._env.random_bytes(KEY_BYTES))
        check_rule(AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, key, Secret("")))
        self._check_key(key.reveal())
        return NamespaceSettings(
            name=name,
            is_made_running=True,
            hostnames=tuple(dict.fromkeys(map(check_host_name, wanted.hostnames))),
            profile=profile,
            key=key.reveal(),
            throughput_units=units or None,
            maximum_throughput_units=maximum or None,
        )

    def _check_place(self, name: str) -> None:
        """ServiceError where the service has the name already, or takes no more namespaces."""
        if any(fold(each.name) == fold(name) for each in self.namespaces):
            raise ServiceError(ENTITY_EXISTS, f"There is a namespace '{name}' already.")
        if len(self.namespaces) >= NAMESPACES_LIMIT:
            text = f"The service has {NAMESPACES_LIMIT} namespaces, which is the most: delete one first."
            raise ServiceError(RESOURCE_LIMIT, text)

    def _check_key(self, key: str) -> None:
        try:
            check_development_key(self._settings, [key])
        except BadSetting as refusal:
            raise ServiceError(NOT_ALLOWED, str(refusal)) from None

    async def _add(self, new: NamespaceSettings) -> Gateway:
        """Serve one namespace more, which is made when it is not there. ServiceError: it is not served."""
        served = (*self.namespaces, new)
        hosts = self._hosts(served)
        _, gateway = await asyncio.gather(self._prepare(served), self._made(new, hosts))
        self._serve(served, hosts)
        return gateway

    def _hosts(self, namespaces: tuple[NamespaceSettings, ...]) -> Mapping[str, HostNames]:
        try:
            return hosts_of(self._settings, namespaces)
        except BadSetting as taken:
            raise ServiceError(ENTITY_EXISTS, f"{str(taken)[:1].upper()}{str(taken)[1:]}.") from None

    async def _made(self, new: NamespaceSettings, hosts: Mapping[str, HostNames]) -> Gateway:
        """The gateway of a new namespace, on a catalog of its own."""
        settings = self._settings
        try:
            writer = await self._stored.open(
                new, partitions_limit=settings.partitions_limit, capture_account=capture_account(settings)
            )
        except (HubweirError, OSError) as error:
            raise ServiceError(STORE_OFFLINE, f"Nothing was made, the catalogs cannot take more: {error}") from error
        try:
            values = gateway_settings(settings, new, hosts[new.name], self._issuer)
            return await start_gateway(self._process, writer, new, values)
        except ServiceError:
            await self._stored.give_back_catalog(new.name)
            raise

    def _serve(self, namespaces: tuple[NamespaceSettings, ...], hosts: Mapping[str, HostNames]) -> None:
        """From now on these are served, and everybody hears of it."""
        self.namespaces = namespaces
        self._process.lead(hosts)
        self._on_change(namespaces)
        self.version += 1
        self.followers.tell(self.version, encode_namespaces(namespaces))

    async def _followed(self) -> None:
        """Wait until every process serves what is served now."""
        await done(partial(self.followers.when_applied, self.version))

    def _found(self, name: str) -> Gateway:
        gateways = self._process.gateways
        found = next((each for each in gateways if fold(each.settings.namespace) == fold(name)), None)
        if found is None:
            raise ServiceError(NOT_FOUND, f"There is no namespace '{name[:64]}'.")
        if found is self._process.default:
            text = (
                f"'{found.settings.namespace}' is the default namespace, which a service always has: start it with "
                "another one as --namespace, then delete this one."
            )
            raise ServiceError(NOT_ALLOWED, text)
        return found

    async def _removed(self, gateway: Gateway, keeper: CatalogKeeper, catalog: StoredCatalog) -> None:
        name = gateway.settings.namespace
        removal = NamespaceRemoval(self._stored, catalog, keeper, gateway.namespace)
        self._removals.append(removal)
        problem = await removal.attempt()
        if problem is None:
            self._removals.remove(removal)
            NAMESPACE_DELETED.say(logger, namespace=name, outcome=EVERYTHING)
            return
        NAMESPACE_DELETED.say(logger, level=logging.WARNING, namespace=name, outcome=f"not all is gone yet: {problem}")
        self._tasks.start(self._carry_on(removal, name), name=f"deletion of namespace {name}")
        text = f"The namespace '{name}' is not served any more, and not all of it is removed yet"
        raise ServiceError(STORE_OFFLINE, f"{text}: the service goes on with it by itself.") from problem

    async def _carry_on(self, removal: NamespaceRemoval, name: str) -> None:
        await removal.go_on()
        self._removals.remove(removal)
        NAMESPACE_DELETED.say(logger, namespace=name, outcome=EVERYTHING)


def _say_created(gateway: Gateway) -> None:
    described = gateway.namespace.description
    NAMESPACE_CREATED.say(
        logger, namespace=described.name, profile=described.profile, hosts=", ".join(described.hostnames) or None
    )


def _keeper(gateway: Gateway) -> CatalogKeeper:
    assert isinstance(gateway.keeper, CatalogKeeper), "this process keeps the catalogs"
    return gateway.keeper
