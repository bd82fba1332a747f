import gc
import os
import subprocess
import sys

from hubweir.spark import worker_process
from hubweir.spark.worker_process import end_quietly, freeze_garbage


def test_garbage_is_frozen_once_a_process() -> None:
    try:
        freeze_garbage()
        assert gc.get_freeze_count() > 0
        frozen = gc.get_freeze_count()
        kept = [[] for _ in range(1000)]  # type: list[list[int]]
        freeze_garbage()
        assert gc.get_freeze_count() == frozen and kept
    finally:
        gc.unfreeze()
        worker_process._frozen.clear()


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
