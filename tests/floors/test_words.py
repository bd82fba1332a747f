"""One word for one thing: a class name belongs to one class of the package, and a limit is called LIMIT."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.floors.parsed import nodes
from tests.floors.test_tidy import SOURCE, production

# A name that two classes have on purpose: the reason, and the modules that may have it.
SHARED = {
    # AMQP's word and what users of the client import: both are the two ends of one connection.
    "Connection": {"hubweir/amqp/transport/connection.py", "hubweir/client/connection.py"},
}

# Other words for a limit. The unit ends the name: REQUEST_LIMIT_BYTES.
OTHER_WORDS = re.compile(r"(?:^|_)(?:MAX|MOST|LONGEST|LARGEST|HIGHEST|CEILING)(?:_|$)")
NOT_LIMITS = {
    *("UINT_MAX", "USHORT_MAX", "_LONG_MAX"),  # the largest values of a type
    *("MIN_MAX_FRAME_SIZE", "DEFAULT_MAX_MESSAGE_SIZE"),  # what AMQP calls so
    "LARGEST_BATCH_BYTES",  # beyond it a scan takes a batch's length for damage
}
# Of fields and parameters, behind what is limited: `partitions_max`.
OTHER_SUFFIXES = re.compile(r"_(?:max|most|longest|largest|highest)(?:_(?:ms|s|bytes))?$")
NO_OTHER_SUFFIXES = {"channel_max", "handle_max", "remote_max"}  # what AMQP calls so


def is_twin(module: str) -> bool:
    """Twins have the names of what stands in compiled code, which has no classes that anybody else sees."""
    return module.startswith("hubweir/kernels/") and module.count("/") == 3  # in a room


def class_names(source: Path) -> dict[str, list[str]]:
    """The modules that define a class, by its name."""
    found = defaultdict(list)
    for module, tree in production(source):
        if not is_twin(module):
            for node in nodes(tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(module)
    return found


def names_with_two_owners(source: Path) -> list[str]:
    return [
        f"{name}: {', '.join(modules)}"
        for name, modules in sorted(class_names(source).items())
        if len(modules) > 1 and (len(set(modules)) < len(modules) or SHARED.get(name) != set(modules))
    ]


def limits_with_another_word(source: Path) -> list[str]:
    """Constants, fields and parameters; kernels and their contracts left out: those repeat names of compiled code."""
    found = []
    for module, tree in production(source):
        if module.startswith("hubweir/kernels/"):
            continue
        for node in nodes(tree):
            is_constant = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.isupper()
            if is_constant and OTHER_WORDS.search(node.id) and node.id not in NOT_LIMITS:
                found.append(f"{module}: {node.id}")
            for name in fields_and_parameters(node):
                if OTHER_SUFFIXES.search(name) and name not in NO_OTHER_SUFFIXES:
                    found.append(f"{module}: {name}")
    return found


def fields_and_parameters(node: ast.AST) -> list[str]:
    """Of a class or a function itself, not of what is inside it."""
    if isinstance(node, ast.ClassDef):
        annotated = (line.target for line in node.body if isinstance(line, ast.AnnAssign))
        return [target.id for target in annotated if isinstance(target, ast.Name)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return []


def plant(tmp_path: Path, module: str, text: str) -> None:
    path = tmp_path / "hubweir" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'"""A part."""\n{text}\n')


def test_a_class_name_stands_for_one_thing() -> None:
    assert not names_with_two_owners(SOURCE)


def test_a_name_that_a_second_class_takes_is_caught(tmp_path: Path) -> None:
    plant(tmp_path, "auth/claims.py", "class Claim: ...")
    plant(tmp_path, "client/load_balancer.py", "class Claim: ...\nclass Round: ...")
    assert names_with_two_owners(tmp_path) == ["Claim: hubweir/auth/claims.py, hubweir/client/load_balancer.py"]


def test_one_module_cannot_use_a_name_twice_either(tmp_path: Path) -> None:
    plant(tmp_path, "auth/claims.py", "class Claim: ...\ndef f():\n    class Claim: ...")
    assert names_with_two_owners(tmp_path) == ["Claim: hubweir/auth/claims.py, hubweir/auth/claims.py"]


def test_a_shared_name_is_for_its_two_modules_only(tmp_path: Path) -> None:
    for module in ("amqp/transport/connection.py", "client/connection.py"):
        plant(tmp_path, module, "class Connection: ...")
    assert not names_with_two_owners(tmp_path)
    plant(tmp_path, "drivers/connection.py", "class Connection: ...")
    assert len(names_with_two_owners(tmp_path)) == 1


def test_a_twin_may_have_the_name_of_what_it_stands_for(tmp_path: Path) -> None:
    plant(tmp_path, "amqp/messaging/message.py", "class Message: ...")
    plant(tmp_path, "kernels/messages/ingest.py", "class Message: ...")
    assert not names_with_two_owners(tmp_path)


def test_every_shared_name_is_shared_still() -> None:
    """A name that only one class has leaves the list."""
    names = class_names(SOURCE)
    assert all(set(names[name]) == modules for name, modules in SHARED.items())


def test_a_limit_is_called_limit() -> None:
    assert not limits_with_another_word(SOURCE)


def test_other_words_for_a_limit_are_caught(tmp_path: Path) -> None:
    for number, planted in enumerate(("A_MAX = 1", "A, MOST_BYTES = 1, 2", "LONGEST_MS: Final = 1", "_CEILING = 2")):
        plant(tmp_path / str(number), "auth/claims.py", planted)
        assert len(limits_with_another_word(tmp_path / str(number))) == 1, planted
    plant(tmp_path, "auth/claims.py", "CLAIMS_LIMIT = 1\nMAXIMAL = UINT_MAX = 2\ndef f(most): MAX")
    assert not limits_with_another_word(tmp_path)


def test_fields_and_parameters_with_another_word_are_caught(tmp_path: Path) -> None:
    for number, planted in enumerate(
        ("class A:\n    claims_max: int", "def f(wait_longest_ms): ...", "async def f(*, read_most_bytes=1): ...")
    ):
        plant(tmp_path / str(number), "auth/claims.py", planted)
        assert len(limits_with_another_word(tmp_path / str(number))) == 1, planted
    plant(tmp_path, "auth/claims.py", "class A:\n    claims_limit: int\ndef f(channel_max, max_bytes): ...")
    assert not limits_with_another_word(tmp_path)
