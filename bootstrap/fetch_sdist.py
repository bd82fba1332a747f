"""Downloads one source distribution without running anything in it: fetch_sdist.py PINS NAME FOLDER.

Runs in the environment, on the pip pinned there. `pip download` would run the package's setup script to learn its
metadata; this asks pip's own finder for the address and pip's own session for the bytes, so the user's index,
certificate, proxy and password settings all count, and the file is checked against its hash before it gets its name.
pip's inside is no public interface: that is why its version is pinned.
"""

import hashlib
import re
import sys
from pathlib import Path

from pip._internal.commands.download import DownloadCommand
from pip._internal.network.session import PipSession


def pin_of(pins: str, name: str) -> tuple[str, str]:
    """Return the version and the SHA-256 that the text of a requirements file gives for name."""
    found = re.search(rf"^{re.escape(name)}==(\S+) *\\\n *--hash=sha256:([0-9a-f]{{64}})", pins, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{name} has no pin with a hash")
    return found[1], found[2]


def download(name: str, version: str) -> tuple[str, bytes]:
    """Return the file name and the bytes of the source distribution, wherever pip's settings find it."""
    command = DownloadCommand("download", "find one file")
    options, _ = command.parse_args(["--no-binary", ":all:", name])
    with command.main_context():
        session: PipSession = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        links = [c.link for c in finder.find_all_candidates(name) if str(c.version) == version and not c.link.is_wheel]
        if not links:
            raise SystemExit(f"no source distribution of {name} {version}: does pip reach its index?")
        answer = session.get(links[0].url_without_fragment, headers={"Accept-Encoding": "identity"})
        answer.raise_for_status()
        return links[0].filename, answer.content


def main(pins: str, name: str, folder: str) -> None:
    version, sha256 = pin_of(Path(pins).read_text(), name)
    target = Path(folder)
    kept = next(target.glob(f"{name}-{version}.*"), None)
    if kept is None or hashlib.sha256(kept.read_bytes()).hexdigest() != sha256:
        print(f"hubweir: downloading {name} {version} ...", file=sys.stderr, flush=True)
        filename, content = download(name, version)
        if (got := hashlib.sha256(content).hexdigest()) != sha256:
            raise SystemExit(f"{filename} has the SHA-256 {got}, its pin says {sha256}; nothing was kept")
        target.mkdir(parents=True, exist_ok=True)
        kept = target / filename
        unfinished = kept.with_name(f"{filename}.new")
        unfinished.write_bytes(content)
        unfinished.replace(kept)
    print(kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
