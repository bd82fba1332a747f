"""What a page shows runs where hubweir is, what the page tells its reader to install, and nothing else.

So an example that needs a package of the tests fails here. That a page names what it imports, test_named_packages.py
looks at in every run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from bootstrap.environment import Environment
from hubweir.client.tests import test_pages as client_pages
from hubweir.testing.running_namespace import running_namespace
from hubweir.testing.server_process import ServerProcess
from hubweir.testing.tests.test_pytest_plugin import PLUGIN, run_examples
from tests.documents.fresh_environments import FreshEnvironments
from tests.documents.named_packages import HUBWEIR, Way, told
from tests.documents.page_examples import DOCS, PAGES, ROOT, example, run_example, said_by
from tests.documents.test_page_sessions import TYPED
from tests.documents.test_readme_session import do_what_the_page_says
from tests.spark import test_page as spark_page

README, TESTING = ROOT / "README.md", DOCS / "testing.md"
# A page that names nothing for a checkout has there what an installation has.
RUN = [
    pytest.param(page, way, id=f"{page.stem}-{way}")
    for page in (*PAGES, DOCS / "http.md", DOCS / "throughput_unit.md")
    for way in Way
    if way is Way.INSTALLATION or told(page.read_text(), way)
]
QUEUES = "```python\nfrom azure.servicebus import ServiceBusClient\n```\n"
WHAT_IS_HERE = """
import hubweir, importlib.metadata as metadata, json
packages = {each.metadata["Name"]: each.version for each in metadata.distributions()}
print(json.dumps([hubweir.__file__, packages]))
"""
LIMIT_S = 300  # other tests run beside it, and the kernels are not compiled
SPARK_S = 600  # half of it to build PySpark, where no cache has it
pytestmark = pytest.mark.slow  # a minute or two of installing, then each page once more


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> FreshEnvironments:
    env = Environment(ROOT)
    uv = env.uv()
    if uv is None:
        pytest.skip("NOT RUN: no uv is here")
    return FreshEnvironments(env, uv, tmp_path_factory.mktemp("fresh"))


@pytest.fixture(autouse=True)
def variables_of_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without those that lead to the checkout, or to another service."""
    for name in [name for name in os.environ if name.startswith(("PYTHON", "HUBWEIR_"))]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("way", Way)
def test_an_environment_has_the_pinned_packages_and_none_of_the_tests(
    way: Way, environments: FreshEnvironments, tmp_path: Path
) -> None:
    python = environments.python(way, [])
    asked = [python, "-c", WHAT_IS_HERE]
    done = subprocess.run(asked, env={}, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    place, packages = json.loads(done.stdout)
    assert place.startswith(str(ROOT / "src" if way is Way.CHECKOUT else python.parents[1]))
    assert "msgspec" in packages and ("azure-servicebus" in packages) is (way is Way.CHECKOUT)
    assert not packages.keys() & {"pytest", "hypothesis", "aiohttp", "azure-mgmt-eventhub"}
    pins = {pin.split()[0] for pin in environments.pins.read_text().splitlines()}
    here = {f"{canonicalize_name(name)}=={version}" for name, version in packages.items() if name != HUBWEIR}
    assert here <= pins


@pytest.mark.parametrize(("page", "way"), RUN)
def test_an_example_runs(page: Path, way: Way, environments: FreshEnvironments, tmp_path: Path) -> None:
    python = environments.python(way, told(page.read_text(), way))
    assert run_example(example(page.read_text()), python=python, environment={}, folder=tmp_path, limit_s=LIMIT_S) == ""


def test_control_arm_an_example_without_its_package_fails(environments: FreshEnvironments, tmp_path: Path) -> None:
    python = environments.python(Way.INSTALLATION, told(QUEUES, Way.INSTALLATION))
    said = run_example(example(QUEUES), python=python, environment={}, folder=tmp_path)
    assert "No module named 'azure'" in said


@pytest.mark.parametrize(("name", "code"), client_pages.examples(), ids=[name for name, _ in client_pages.examples()])
def test_an_example_of_the_client_runs(name: str, code: str, environments: FreshEnvironments, tmp_path: Path) -> None:
    page = name.partition("-")[0]
    python = environments.python(Way.INSTALLATION, told((DOCS / f"{page}.md").read_text(), Way.INSTALLATION))
    with running_namespace() as namespace:
        namespace.create_event_hub(client_pages.HUBS[page], partition_count=1)
        own, places = client_pages.TEXT.subn(f"TEXT = {namespace.connection_string()!r}\n", code)
        assert places == 1
        assert run_example(own, python=python, environment={}, folder=tmp_path, limit_s=LIMIT_S) == ""


@pytest.mark.timeout(SPARK_S)
@pytest.mark.parametrize("page", ["spark", "spark_write", "pipelines"])
def test_an_example_of_spark_runs(page: str, environments: FreshEnvironments, tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("NOT RUN: Spark could not be installed here")
    text = (DOCS / f"{page}.md").read_text()
    python = environments.python(Way.INSTALLATION, told(text, Way.INSTALLATION))
    spark_page.put_captured_file(tmp_path)
    with running_namespace() as namespace:
        for name in (*spark_page.HUBS, "breakfast"):
            namespace.create_event_hub(name, partition_count=2)
        own, places = spark_page.TEXT.subn(lambda _: f"TEXT = {namespace.connection_string()!r}\n", example(text))
        assert places == 1
        variables = {"PATH": os.environ["PATH"]}  # of Java, where the machine has one
        assert run_example(own, python=python, environment=variables, folder=tmp_path, limit_s=SPARK_S) == ""


@pytest.mark.parametrize(("way", "options"), [(Way.INSTALLATION, ()), (Way.CHECKOUT, ("-p", PLUGIN))])
def test_the_examples_for_pytest_pass(
    way: Way, options: tuple[str, ...], environments: FreshEnvironments, tmp_path: Path
) -> None:
    text = TESTING.read_text()
    assert f"`./run python -m pytest -p {PLUGIN}`" in text
    done = run_examples(text, tmp_path, environments.python(way, told(text, way)), options)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("way", Way)
def test_the_readme_does_what_it_says(way: Way, environments: FreshEnvironments, tmp_path: Path) -> None:
    python = environments.python(way, told(README.read_text(), way))
    with ServerProcess(tmp_path / "data", environment={"PYTHONPATH": str(ROOT / "src")}) as server:
        do_what_the_page_says(server, python, source="")


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, environments: FreshEnvironments, tmp_path: Path) -> None:
    if "openssl " in page.read_text() and shutil.which("openssl") is None:
        pytest.skip("no openssl is here")
    assert typed(page, environments, tmp_path) == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("hubweir serve --traces http://127.0.0.1:4318/v1/traces", "hubweir[traces]"),
        ("hubweir sas make flights --lifetime never", "exit code 2"),
    ],
)
def test_control_arm_a_command_that_fails_in_an_installation_is_found(
    command: str, said: str, environments: FreshEnvironments, tmp_path: Path
) -> None:
    """The first one works in the environment of the tests."""
    page = tmp_path / "page.md"
    page.write_text(f"<!-- run -->\n```console\n$ {command}\n```\n")
    assert said in typed(page, environments, tmp_path)


def typed(page: Path, environments: FreshEnvironments, folder: Path) -> str:
    """What is not as the page says, where its commands are typed in an installation."""
    python = environments.python(Way.INSTALLATION, told(page.read_text(), Way.INSTALLATION))
    return said_by(
        [python, "-m", "tests.documents.page_session", page],
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},  # of the tests the runner alone
        folder=folder,
        limit_s=LIMIT_S,
    )
