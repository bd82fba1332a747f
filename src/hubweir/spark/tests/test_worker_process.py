import gc
import os
import platform
import subprocess
import sys
from types import ModuleType

import pytest

from hubweir.spark import worker_process
from hubweir.spark.worker_process import freeze_garbage


def test_garbage_is_frozen_again_only_when_modules_were_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that comes in the middle of a task brings objects that the next collection would look through."""
    try:
        freeze_garbage()
        kept: list[object] = []
        freeze_garbage()
        assert is_looked_through(kept), "nothing was loaded since"
        monkeypatch.setitem(sys.modules, "loaded_late", ModuleType("loaded_late"))
        freeze_garbage()
        assert not is_looked_through(kept)
    finally:
        worker_process._told = None


def is_looked_through(thing: object) -> bool:
    """Whether a collection looks at it: what is frozen is not among these objects."""
    return any(each is thing for each in gc.get_objects())


IMPORTS = "from hubweir.spark.worker_process import end_quietly\n"


def told_by_a_process(of: str, steps: str, *, imports: str = IMPORTS) -> str:
    """What a process prints on stderr whose main module has the name `of`, and whose end is written as steps."""
    program = (
        "import sys, traceback; from types import SimpleNamespace as N\n"
        f"sys.modules['__main__'].__spec__ = N(name={of!r})\n" + imports + steps
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment).stderr


STREAM_ENDS = """
try:
    raise {error}
finally:
    end_quietly()
    print("after", file=sys.stderr)
"""


def test_a_stream_ends_quietly_when_its_query_is_over_and_aloud_by_an_error_of_its_own() -> None:
    assert told_by_a_process("pyspark.daemon", STREAM_ENDS.format(error="EOFError")) == ""
    said = told_by_a_process("pyspark.daemon", STREAM_ENDS.format(error="ValueError('ours')"))
    assert said.startswith("after\n") and "ValueError: ours" in said
    assert "after\n" in told_by_a_process("my_job", STREAM_ENDS.format(error="EOFError"))


LOOK_UP = """
import io
from pyspark.sql.worker import lookup_data_sources
lookup_data_sources._main(io.BytesIO(), io.BytesIO())
try:
    raise BrokenPipeError("flushed")
except BaseException:
    {end}
"""


@pytest.mark.parametrize("end", ["traceback.print_exc()", "raise"])
def test_sparks_look_up_of_data_sources_ends_quietly_too(end: str) -> None:
    """It is the one worker that nothing of ours is pickled for."""
    pytest.importorskip("pyspark")
    assert told_by_a_process("pyspark.daemon", LOOK_UP.format(end=end), imports="") == ""


# As pyspark/daemon.py ends a worker: its main has run, and what it answered is flushed.
WORKER_ENDS = """
def worker():
    try:
        try:
            {main}
        except BaseException as error:
            sys.exit(-1)  # behind an attempt to tell Spark of it
    finally:
        raise BrokenPipeError("flushed")
try:
    worker()
except BaseException:
    {end}
"""


@pytest.mark.parametrize("end", ["traceback.print_exc()", "raise"])
@pytest.mark.parametrize(
    ("main", "is_told"),
    [("pass", False), ("raise BrokenPipeError('in the middle')", False), ("raise ValueError('untold')", True)],
)
def test_a_worker_whose_pipe_is_closed_tells_of_its_own_faults_only(end: str, main: str, is_told: bool) -> None:
    said = told_by_a_process("pyspark.daemon", WORKER_ENDS.format(main=main, end=end))
    assert ("ValueError: untold" in said) is is_told and bool(said) is is_told
    assert "flushed" in told_by_a_process("my_job", WORKER_ENDS.format(main=main, end=end))


def page_faults(name: str) -> int:
    """Of a process whose main module has this name, while it makes and drops 24 MB four times, behind two more."""
    told = (
        "import resource, sys; from types import SimpleNamespace as N\n"
        "from hubweir.spark.worker_process import keep_freed_memory\n"
        f"sys.modules['__main__'].__spec__ = N(name={name!r}); keep_freed_memory()\n"
        "def cycle():\n"
        "    kept = [bytearray(3_000_000) for _ in range(8)]\n"
        "    for each in kept: each[::4096] = each[::4096]\n"
        "cycle(); cycle(); before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(4): cycle()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return int(subprocess.run([sys.executable, "-c", told], stdout=subprocess.PIPE, env=environment, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the switch")
def test_a_worker_of_sparks_keeps_the_memory_that_it_frees() -> None:
    given_back = page_faults("my_job")
    assert given_back > 4 * 24_000_000 // 4096 // 2
    assert page_faults("pyspark.daemon") < given_back // 10
