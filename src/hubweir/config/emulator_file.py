"""The Config.json of the official emulators, read unchanged: bytes in, frozen values out, or every error at once.

A file has the member UserConfig, and in it NamespaceConfig (Event Hubs), Namespaces (Service Bus), or both. parse_…
takes the bytes of files and touches nothing; read_… opens files and folders. The page is docs/emulator_config.md.
(Event Hubs emulator and Service Bus emulator, configuration schemas)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hubweir.config.emulator_entities import EmulatorConfig, LogTarget, NamespaceConfig, Root
from hubweir.config.emulator_limits import SERVICE, FileLimits
from hubweir.config.emulator_namespace import Taken, joined, read_namespaces
from hubweir.config.file_text import SIZE_LIMIT_BYTES
from hubweir.config.json_fields import Fields, fields_of
from hubweir.config.json_file import ConfigFile
from hubweir.config.problems import Kind, Location, Problem, Problems, Severity, quoted

# How people are told of a Config.json that is no file.
TEXT_NAME = "emulator_config_text"
# Which member says where the log goes, by the root it belongs to.
LOGGING = {Root.EVENT_HUBS: "LoggingConfig", Root.SERVICE_BUS: "Logging"}


def read_emulator_files(
    paths: Iterable[Path], *, text: str = "", limits: FileLimits = SERVICE, strict: bool = False
) -> EmulatorConfig:
    """All files together, as if one file held all their namespaces; a folder means every `*.json` in it, by name.

    text: one more, as the setting emulator_config_text has it; then there may be no file. Raises EmulatorFileError,
    also for files that cannot be read.
    """
    problems = Problems()
    paths = tuple(paths)
    found = _files(paths, problems) if paths or not text else []
    contents = [(str(path), data) for path in found if (data := _read(path, problems)) is not None]
    if text:
        contents.append((TEXT_NAME, text.encode()))
    return parse_emulator_files(contents, problems, limits=limits, strict=strict)


def parse_emulator_files(
    contents: Sequence[tuple[str, bytes]], problems: Problems, *, limits: FileLimits = SERVICE, strict: bool = False
) -> EmulatorConfig:
    """The contents of files, each with its name in problems. strict: unknown members are errors, not warnings.

    Raises EmulatorFileError with all problems, those that problems held before too, and nothing else, whatever the
    bytes are.
    """
    taken = Taken()
    namespaces: list[NamespaceConfig] = []
    log_targets: dict[LogTarget, None] = {}
    for name, data in contents:
        file = ConfigFile(data, file=name, problems=problems, strict=strict)
        root = None if file.root is None else fields_of(file, file.root, ())
        if root is not None:
            namespaces += _read_root(root, limits, taken, log_targets)
    problems.raise_errors()
    return EmulatorConfig(
        files=tuple(name for name, _ in contents),
        namespaces=joined(namespaces),
        log_targets=tuple(log_targets),
        warnings=problems.warnings,
    )


def _read_root(
    root: Fields, limits: FileLimits, taken: Taken, log_targets: dict[LogTarget, None]
) -> list[NamespaceConfig]:
    root.ignore("$schema")
    user_config = root.object("UserConfig", required=True)
    root.finish()
    if user_config is None:
        return []
    namespaces: list[NamespaceConfig] = []
    roots = [kind for kind in Root if user_config.member(kind.value) is not None]
    if not roots:
        names = " or ".join(kind.value for kind in Root)
        what = "no namespaces are named"
        user_config.file.error(Kind.MISSING, user_config.at, user_config.steps, what, found="nothing", allowed=names)
    for kind in roots:
        namespaces += read_namespaces(user_config, kind, limits, taken)
        if limits.official:
            user_config.member(LOGGING[kind], required=True, allowed="an object")
    for name in LOGGING.values():
        log_targets.update(dict.fromkeys(_read_log_targets(user_config, name)))
    if user_config.member("Server") is not None:
        what = "hubweir does not read Server from this file"
        user_config.warn("Server", what, kind=Kind.NOT_SERVED, allowed="flags, HUBWEIR_… variables, a TOML file")
    user_config.finish()
    return namespaces


def _read_log_targets(user_config: Fields, name: str) -> list[LogTarget]:
    """The member Type of LoggingConfig or Logging: File, Console, or both with a comma between."""
    fields = user_config.object(name)
    if fields is None:
        return []
    allowed = '"File", "Console", "File,Console", "Console,File"'
    text = fields.text("Type", required=True, allowed=allowed)
    fields.finish()
    if text is None:
        return []
    known = {target.value.lower(): target for target in LogTarget}
    words = [word.strip().lower() for word in text.split(",", len(known))]
    if len(set(words)) == len(words) and known.keys() >= set(words):
        return [known[word] for word in words]
    fields.bad("Type", "this is no place for a log", found=quoted(text), allowed=allowed)
    return []


def _files(paths: Iterable[Path], problems: Problems) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        try:
            found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        except OSError as error:
            _unreadable(path, f"the folder cannot be read: {error.strerror or error}", problems)
            continue
        files += found
        if not found:
            _unreadable(path, "the folder holds no *.json", problems)
    if not files and not problems.failed:
        _unreadable(Path("."), "no file is given", problems)
    return files


def _read(path: Path, problems: Problems) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(SIZE_LIMIT_BYTES + 1)  # one more than is taken: parsing refuses it
    except OSError as error:
        _unreadable(path, f"the file cannot be read: {error.strerror or error}", problems)
    return None


def _unreadable(path: Path, what: str, problems: Problems) -> None:
    problems.add(Problem(Severity.ERROR, Kind.UNREADABLE, Location(str(path), 1, 1, "$"), what, "", ""))
