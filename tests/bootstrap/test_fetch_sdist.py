"""A pinned file is kept only with its pinned bytes."""

import hashlib
from pathlib import Path

import pytest

# It asks pip's own finder, so it needs the environment's pip.
fetch_sdist = pytest.importorskip("bootstrap.fetch_sdist", reason="pip is not in this environment")

CONTENT = b"flights"


def pins(folder: Path, sha256: str) -> str:
    path = folder / "data.txt"
    path.write_text(f"flights==1.0 \\\n    --hash=sha256:{sha256}\n")
    return str(path)


@pytest.fixture(autouse=True)
def download(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for the index, and keep a list of what was asked of it."""
    asked: list[str] = []

    def answer(name: str, version: str) -> tuple[str, bytes]:
        asked.append(f"{name} {version}")
        return f"{name}-{version}.tar.gz", CONTENT

    monkeypatch.setattr(fetch_sdist, "download", answer)
    return asked


def test_a_file_is_downloaded_once_and_its_path_printed(
    tmp_path: Path, download: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        fetch_sdist.main(pins(tmp_path, hashlib.sha256(CONTENT).hexdigest()), "flights", str(tmp_path / "data"))
        assert Path(capsys.readouterr().out.strip()).read_bytes() == CONTENT
    assert download == ["flights 1.0"]


def test_other_bytes_than_pinned_are_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="its pin says"):
        fetch_sdist.main(pins(tmp_path, "0" * 64), "flights", str(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


def test_a_kept_file_that_was_damaged_is_fetched_again(tmp_path: Path, download: list[str]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/flights-1.0.tar.gz").write_bytes(b"half")
    fetch_sdist.main(pins(tmp_path, hashlib.sha256(CONTENT).hexdigest()), "flights", str(tmp_path / "data"))
    assert (tmp_path / "data/flights-1.0.tar.gz").read_bytes() == CONTENT
    assert download == ["flights 1.0"]


def test_a_requirement_without_a_hash_is_refused() -> None:
    with pytest.raises(SystemExit, match="no pin with a hash"):
        fetch_sdist.pin_of("flights==1.0\n", "flights")
