import gc
import os
import platform
import subprocess
import sys
from types import ModuleType

import pytest

from hubweir.spark import worker_process
from hubweir.spark.worker_process import end_quietly, freeze_garbage


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
        gc.unfreeze()
        worker_process._told = None


def is_looked_through(thing: object) -> bool:
    """Whether a collection looks at it: what is frozen is not among these objects."""
    return any(each is thing for each in gc.get_objects())


def test_only_a_process_of_sparks_is_silenced() -> None:
    stderr = sys.stderr
    end_quietly()
    assert sys.stderr is stderr
    told = (
        "import sys; from types import SimpleNamespace as N; from hubweir.spark.worker_process import end_quietly\n"
        "sys.modules['__main__'].__spec__ = N(name='pyspark.daemon')\n"
        "print('before', file=sys.stderr); end_quietly(); print('after', file=sys.stderr); 1 / 0"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, env=environment)
    assert ran.stderr == "before\n" and ran.returncode == 1


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
