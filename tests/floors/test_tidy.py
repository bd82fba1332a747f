"""What keeps the tree readable and its lower floors pure; each rule has a control arm with a planted offence."""

import ast
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.floors.parsed import nodes, parsed

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FLOORS = tomllib.loads((ROOT / "docs/floors.toml").read_text())["floors"]
PURE = [folder for name in ("codec", "engine", "storage", "domain") for folder in FLOORS[name]["folders"]]

# The outside world: below the servers floor it comes in through Env or as an argument.
WORLD = {
    "asyncio", "concurrent", "multiprocessing", "os", "queue", "random", "secrets", "select", "selectors", "signal",
    "socket", "ssl", "subprocess", "tempfile", "threading", "time", "uuid", "uvloop",
}  # fmt: skip
MAY_TOUCH = {
    ("hubweir/messaging_store/disk/files.py", "os"),  # the one module that calls the system for files
    ("hubweir/messaging_store/disk/files.py", "threading"),  # offloaded calls share its descriptors: a lock, no thread
    ("hubweir/kernels/__init__.py", "os"),  # reads which twin the environment asks for
}
# UUID is a type of AMQP; only making one up needs the world.
VALUES = {"uuid.UUID"}
# The same through a module that is fine otherwise.
CALLS_OF_THE_WORLD = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
LONGEST = 350
HEADLESS = {"How", "What", "Whatever", "When", "Where", "Whether", "Which", "Who", "Whoever", "Whose", "Why"}
ENTRY_POINTS = {
    *("hubweir", "hubweir.__main__", "hubweir.cli.main", "hubweir.config.settings_page"),
    "hubweir.service.broker_process",  # a program, which supervisors start
    # what users of the client import
    "hubweir.client.blocking",
    "hubweir.client.blocking_processor",
    "hubweir.client.blocking_queue",
    "hubweir.client.memory_checkpoint_store",
    "hubweir.client.sqlite_checkpoint_store",
    "hubweir.spark.json_view",
    # what brokers and gateways take from topics
    *("hubweir.topic.topic_rules", "hubweir.topic.changed_message", "hubweir.topic.rule_wire"),
}
# kernels picks a twin; users of Spark write hubweir.spark.session() and hubweir.spark.register(spark).
FRONT_PAGES_WITH_NAMES = {"hubweir/kernels/__init__.py", "hubweir/spark/__init__.py"}
# Who starts tasks also ends them: each line is a module that awaits or cancels every task it creates.
SUPERVISORS = {"hubweir/drivers/tasks.py"}


def production(source: Path) -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the tree of every module that ships, tests left out."""
    for path in sorted((source / "hubweir").rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if "/tests/" not in name:
            yield name, parsed(path)


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield every call with its last two names: asyncio.Queue() gives (call, "asyncio", "Queue")."""
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                owner = node.func.value
                left = (
                    owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
                )
                yield node, left, node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node, "", node.func.id


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def only_values(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and {f"{node.module}.{alias.name}" for alias in node.names} <= VALUES


def world_below_the_servers(source: Path) -> list[str]:
    """async, await, clocks, sockets, threads, randomness: none of it in codec, engine, storage and domain."""
    found = []
    for name, tree in production(source):
        if not any(name.startswith(f"hubweir/{folder.replace('.', '/')}/") for folder in PURE):
            continue
        for node in nodes(tree):
            if isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await):
                found.append(f"{name}:{node.lineno}: {type(node).__name__}")
            for module in modules_of(node):
                top = module.split(".")[0]
                if top in WORLD and (name, top) not in MAY_TOUCH and not only_values(node):
                    found.append(f"{name}:{getattr(node, 'lineno', 0)}: imports {module}")
        found += [
            f"{name}:{call.lineno}: calls {left}.{right}"
            for call, left, right in calls(tree)
            if (left, right) in CALLS_OF_THE_WORLD or (left, right) == ("", "open")
        ]
    return found


def relative_imports(source: Path) -> list[str]:
    """docs/floors.toml is held against full module names."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in production(source)
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]


def front_pages_that_import(source: Path) -> list[str]:
    """An __init__.py is a docstring; the package's also has its version. Two folders have more."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in production(source)
        if name.endswith("/__init__.py") and name not in FRONT_PAGES_WITH_NAMES
        for node in nodes(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def missing_docstrings(source: Path) -> list[str]:
    """Every file and every folder says what it is."""
    return [name for name, tree in production(source) if not ast.get_docstring(tree)]


def headless_first_lines(source: Path) -> list[str]:
    """The first line of a module names its subject or says what it does: it begins with no "what" or "who"."""
    return [
        f"{name}: {docstring.splitlines()[0]}"
        for name, tree in production(source)
        if (docstring := ast.get_docstring(tree)) and docstring.split()[0] in HEADLESS
    ]


def long_files(source: Path) -> list[str]:
    """A file over the limit has a line in its docstring that starts with "Long because"."""
    found = []
    for suffix in ("py", "pyx", "pxd"):
        for path in sorted((source / "hubweir").rglob(f"*.{suffix}")):
            text = path.read_text()
            head = text.split('"""')[1] if text.count('"""') >= 2 else ""
            reasoned = any(line.strip().startswith("Long because") for line in head.splitlines())
            if len(text.splitlines()) > LONGEST and not reasoned:
                found.append(f"{path.relative_to(source).as_posix()}: {len(text.splitlines())} lines")
    return found


def dead_modules(source: Path) -> list[str]:
    """Every module is imported by another one that ships, or is an entry point. A test alone keeps nothing alive."""
    alive = set(ENTRY_POINTS)
    names = {}
    for name, tree in production(source):
        module = name.removesuffix(".py").replace("/", ".")
        names[module.removesuffix(".__init__")] = name
        for node in nodes(tree):
            if isinstance(node, ast.Import):
                alive |= {alias.name for alias in node.names} - {module}
            elif isinstance(node, ast.ImportFrom) and node.module != module:
                alive |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                alive.add(node.value)  # commands that load when called are named in a table
    folders = {module for module, name in names.items() if name.endswith("__init__.py")}
    # hubweir.testing is for the users' tests and ours.
    return [
        name
        for module, name in names.items()
        if module not in alive and module not in folders and not module.startswith("hubweir.testing.")
    ]


def unbounded_queues(source: Path) -> list[str]:
    """asyncio.Queue without a bound grows until the process dies."""
    return [
        f"{name}:{call.lineno}"
        for name, tree in production(source)
        for call, _, right in calls(tree)
        if right in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue") and not call.args and not call.keywords
    ]


def bare_excepts(source: Path) -> list[str]:
    """A bare except swallows the cancellation, too."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in production(source)
        for node in nodes(tree)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]


def task_groups(tree: ast.Module) -> set[str]:
    """Return the names that `async with asyncio.TaskGroup() as name` binds."""
    return {
        item.optional_vars.id
        for node in nodes(tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name) and "TaskGroup" in ast.unparse(item.context_expr)
    }


def tasks_without_an_owner(source: Path) -> list[str]:
    """create_task and ensure_future stand in supervisor modules only; a TaskGroup owns its tasks anywhere."""
    return [
        f"{name}:{call.lineno}: {left}.{right}"
        for name, tree in production(source)
        if name not in SUPERVISORS
        for call, left, right in calls(tree)
        if right in ("create_task", "ensure_future") and left not in task_groups(tree)
    ]


def reads_without_a_limit(source: Path) -> list[str]:
    """reader.read() of a stream waits for its end, which a peer may never send, and takes all that comes."""
    return [
        f"{name}:{call.lineno}: {left}.read()"
        for name, tree in production(source)
        for call, left, right in calls(tree)
        if right == "read" and left.lower().endswith(("reader", "socket", "sock", "stream")) and not call.args
    ]


RULES: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    # each rule, and one small offence that it has to catch
    "world": (world_below_the_servers, '"""A part."""\nimport time\n'),
    "async": (world_below_the_servers, '"""A part."""\nasync def f() -> None: ...\n'),
    "clock": (world_below_the_servers, '"""A part."""\nimport datetime\nNOW = datetime.datetime.now()\n'),
    "os": (world_below_the_servers, '"""A part."""\nfrom os import path\n'),
    "uuid": (world_below_the_servers, '"""A part."""\nfrom uuid import UUID, uuid4\n'),
    "open": (world_below_the_servers, '"""A part."""\nF = open("x")\n'),
    "relative": (relative_imports, '"""A part."""\nfrom . import log\n'),
    "docstring": (missing_docstrings, "X = 1\n"),
    "headless": (headless_first_lines, '"""What a part is."""\n'),
    "long": (long_files, '"""A part."""\n' + "X = 1\n" * LONGEST),
    "dead": (dead_modules, '"""A part that nobody imports."""\n'),
    "queue": (unbounded_queues, '"""A part."""\nimport asyncio\nQ = asyncio.Queue()\n'),
    "except": (bare_excepts, '"""A part."""\ntry:\n    X = 1\nexcept:\n    pass\n'),
    "task": (tasks_without_an_owner, '"""A part."""\nimport asyncio\nT = asyncio.create_task(None)\n'),
    "read": (reads_without_a_limit, '"""A part."""\nX = reader.read()\n'),
}


@pytest.mark.parametrize("rule", sorted({check for check, _ in RULES.values()}, key=lambda check: check.__name__))
def test_the_tree_keeps_the_rule(rule: Callable[[Path], list[str]]) -> None:
    broken = rule(SOURCE)
    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


def test_front_pages_import_nothing() -> None:
    assert not front_pages_that_import(SOURCE)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_planted_offence_is_caught_and_named(name: str, tmp_path: Path) -> None:
    rule, offence = RULES[name]
    folder = tmp_path / "hubweir/messaging_store"
    folder.mkdir(parents=True)
    (folder / "planted.py").write_text(offence)
    assert any(line.startswith("hubweir/messaging_store/planted.py") for line in rule(tmp_path))


def test_a_front_page_that_imports_is_caught(tmp_path: Path) -> None:
    (tmp_path / "hubweir/amqp").mkdir(parents=True)
    (tmp_path / "hubweir/amqp/__init__.py").write_text('"""AMQP."""\nimport hubweir.errors\n')
    assert front_pages_that_import(tmp_path) == ["hubweir/amqp/__init__.py:2"]


def test_the_rules_let_good_code_pass(tmp_path: Path) -> None:
    folder = tmp_path / "hubweir/messaging_store/disk"
    folder.mkdir(parents=True)
    (folder / "files.py").write_text('"""Files."""\nimport os\nfrom uuid import UUID\nfrom hubweir.cli import main\n')
    (tmp_path / "hubweir/cli").mkdir()
    long = (
        '"""The commands.\n\nLong because it is a table.\n"""\nimport time\nimport hubweir.messaging_store.disk.files\n'
    )
    owned = "async def f():\n    async with asyncio.TaskGroup() as parts:\n        parts.create_task(g())\n"
    (tmp_path / "hubweir/cli/main.py").write_text(long + owned + "X = 1\n" * LONGEST)
    for rule, _ in RULES.values():
        assert rule(tmp_path) == []
