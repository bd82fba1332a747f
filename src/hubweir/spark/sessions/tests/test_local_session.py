import os
import re
from pathlib import Path

import pytest

import hubweir.spark
from hubweir.spark.sessions import local_session, registration
from hubweir.spark.sessions.local_session import default_settings, environment, local_cores


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[2,4]", 2),
        ("local[*]", os.cpu_count()),
        ("spark://a:7077", 0),
        ("yarn", 0),
    ],
)
def test_cores_of_a_master(master: str, cores: int) -> None:
    assert local_cores(master) == cores


def test_local_settings_are_for_one_machine_only(tmp_path: Path) -> None:
    local, cluster = default_settings("local[2]", tmp_path), default_settings("spark://a:7077", tmp_path)
    assert local["spark.sql.shuffle.partitions"] == "2"
    only_local = {"spark.driver.host", "spark.driver.bindAddress", "spark.sql.shuffle.partitions"}
    assert only_local <= set(local) and not only_local & set(cluster)
    assert not [name for name in cluster if "checkpointFileManagerClass" in name]  # its rename is for one driver
    assert cluster["spark.python.unix.domain.socket.enabled"] == "true"
    log4j = local["spark.driver.extraJavaOptions"].removeprefix("-Dlog4j2.configurationFile=file://")
    assert "rootLogger.level = error" in Path(log4j).read_text()


def test_the_page_has_every_setting_and_no_other(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[5] / "docs" / "spark_limits.md").read_text()
    rows = re.findall(r"^\| (`spark\..*?) \| (.*?) \|", page, re.MULTILINE)
    told = {name: "in local mode" in value for names, value in rows for name in re.findall(r"`(.*?)`", names)}
    local, cluster = default_settings("local[2]", tmp_path), default_settings("spark://a:7077", tmp_path)
    assert told == {name: name not in cluster for name in local}


def test_workers_find_this_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_session, "find_java", lambda folder: {"JAVA_HOME": "/j"})
    monkeypatch.setenv("PYTHONPATH", "/else")
    found = environment("local[2]", tmp_path)
    source, other = found["PYTHONPATH"].split(os.pathsep)
    assert (Path(source) / "hubweir" / "spark").is_dir() and other == "/else"
    assert (found["SPARK_LOCAL_IP"], found["JAVA_HOME"]) == ("127.0.0.1", "/j")
    assert "PYTHONPATH" not in environment("spark://a:7077", tmp_path)


def test_front_page_carries_both_names() -> None:
    assert hubweir.spark.register is registration.register
    assert hubweir.spark.session is local_session.session
