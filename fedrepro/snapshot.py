"""A snapshot of the program: the read-only copy of this package from which a computing command and its workers import.

The digests in the identity of a run are read from files, and modules are loaded from files, some of them late or by a
worker that replaces another. A command that computes therefore copies the package first and loads everything from the
copy: an edit or a checkout after that changes nothing. The copy is stored under the digest of its files in the data
home, and it is compared with the package at every start. What Python and numba compile is stored inside it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.files import abandoned, me

PACKAGE = __name__.split(".", maxsplit=1)[0]
SPECS = "experiments"
"""Folder of specs beside the package, or inside it if it is installed; specs are read once and are not copied."""

VARIABLE = "FEDREPRO_SNAPSHOT"
"""Tells a process that runs from a snapshot, and those it starts, what the snapshot is a copy of."""

CACHES = "__pycache__"
KEPT = 8
"""Snapshots that are kept; the least recently used ones beyond are removed unless a process runs from them."""

LONGEST = 30 * 86400.0
"""Seconds after which the mark of a process of another machine no longer counts."""

NO_REPOSITORY = "the program is not in a git repository of its own"
NO_GIT = "git could not name the commit"


@dataclass(frozen=True)
class Program:
    """The source of a program, as it was when it was loaded.

    folder : the package that this process imports. origin : the package of which it is a copy, or ``folder`` itself.
    digest : of the names and contents of its files. commit : of its own repository; '' without one, and
    ``without_commit`` is the reason. dirty : whether the package or its specs differ from the commit.
    """

    folder: str
    origin: str
    digest: str
    commit: str = ""
    dirty: bool = False
    without_commit: str = ""


# -- the program of this process ---------------------------------------------------------------------------------------


def loaded_from() -> Path:
    """Return the folder of the package that this process imports."""
    return Path(__file__).resolve().parent


def origin() -> Path:
    """Return the folder of the package that the user installed or edits, also in a process that runs from a copy."""
    inherited = _inherited()
    return Path(inherited.origin) if inherited is not None else loaded_from()


def is_snapshot() -> bool:
    """Return whether this process imports the package from a snapshot."""
    return _inherited() is not None


@functools.cache
def program() -> Program:
    """Return the source of this process's program. Without a snapshot, it is read at the first call."""
    return _inherited() or _described(loaded_from(), loaded_from(), read(loaded_from()))


def require() -> None:
    """Raise UserError if the snapshot of this process is no longer complete: new workers would load other code."""
    if is_snapshot() and _digest(read(loaded_from())) != program().digest:
        raise UserError(
            f"the copy of the program in {loaded_from().parent} was changed or removed while this command ran; "
            "finished runs are kept, and the same command continues from there"
        )


def _inherited() -> Program | None:
    """Return what the process that took this process's snapshot knows about it; None without a snapshot."""
    try:
        facts = Program(**json.loads(os.environ.get(VARIABLE, "")))
    except (ValueError, TypeError):
        return None
    return facts if Path(facts.folder) == loaded_from() else None


# -- running from a snapshot -------------------------------------------------------------------------------------------


def run_from_copy(module: str, function: str) -> None:
    """Call a function of this package without arguments, with all modules of the package loaded from a snapshot.

    When it ends, however it ends, a note is printed if the package was edited in the meantime. Call this before the
    command loads anything: modules loaded before are loaded again.
    """
    with _taken(loaded_from()) as copy:
        os.environ[VARIABLE] = json.dumps(asdict(copy))
        sys.path.insert(0, str(Path(copy.folder).parent))
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
        importlib.invalidate_caches()
        loaded = importlib.import_module(module)
        if not importlib.import_module(__name__).is_snapshot():
            raise RuntimeError(f"{module} was loaded from {loaded.__file__}, not from {copy.folder}")
        try:
            getattr(loaded, function)()
        finally:
            with contextlib.suppress(OSError):
                if changed := edited(copy):
                    print(_note(changed), file=sys.stderr)


def edited(copy: Program) -> list[str]:
    """Return the files of the program that are no longer as they were when the snapshot was taken."""
    before, now = read(Path(copy.folder)), read(Path(copy.origin))
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _note(changed: list[str]) -> str:
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return (
        f"note: the program was edited while this command ran ({PACKAGE}/{changed[0]}{more}); "
        "its results are those of the code as it was at the start"
    )


@contextlib.contextmanager
def _taken(package: Path) -> Iterator[Program]:
    """Take a snapshot of a package and keep it for the duration of a block."""
    content = read(package)
    digest = _digest(content)
    with contextlib.ExitStack() as stack:
        for root in _roots(stack):
            with contextlib.suppress(OSError):
                folder = _stored(root.resolve(), digest, content)
                stack.enter_context(_in_use(folder))
                if read(folder / PACKAGE) == content:
                    _evict(root)
                    break
        else:
            raise UserError("no folder for a copy of the program can be written; set FEDREPRO_DATA or TMPDIR to one")
        yield _described(folder / PACKAGE, package, content)


def _roots(stack: contextlib.ExitStack) -> Iterator[Path]:
    """Yield folders that can contain snapshots: in the data home, in the user's cache, a temporary one."""
    if home := os.environ.get("FEDREPRO_DATA", "").strip():  # see fedrepro.data.data_home
        yield Path(home).expanduser() / ".programs"
    import pooch

    yield Path(pooch.os_cache(PACKAGE), ".programs")
    with contextlib.suppress(OSError):
        yield Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-")))


# -- files -------------------------------------------------------------------------------------------------------------


def read(package: Path) -> dict[str, bytes]:
    """Return the content of a package's files by their relative names, without specs, caches and hidden files."""
    content = {}
    for folder, folders, names in os.walk(package):
        at_top = Path(folder) == package
        folders[:] = [name for name in folders if _counts(name) and not (at_top and name == SPECS)]
        for path in (Path(folder, name) for name in names if _counts(name)):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile, or a link to nothing
                content[path.relative_to(package).as_posix()] = path.read_bytes()
    return content


def _counts(name: str) -> bool:
    return not name.startswith(".") and name != CACHES and not name.endswith((".pyc", "~"))


def _digest(content: Mapping[str, bytes]) -> str:
    names = (f"{hashlib.sha256(content[name]).hexdigest()} {name}\n" for name in sorted(content))
    return hashlib.sha256("".join(names).encode()).hexdigest()[:24]


def _stored(root: Path, digest: str, content: Mapping[str, bytes]) -> Path:
    """Return the folder of the snapshot with this content, which is written if it is absent or damaged."""
    folder = root / digest
    if folder.is_dir():
        if read(folder / PACKAGE) == content:
            os.utime(folder)
            return folder
        folder.rename(root / f"{digest}.damaged.{me()}.{secrets.token_hex(4)}")
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = root / f"{digest}.part.{me()}"
    _remove(part)
    _write(part / PACKAGE, content)
    if previous := _newest(root):
        _copy_caches(previous[0] / PACKAGE, part / PACKAGE, content)
    try:
        part.rename(folder)
    except OSError:  # another process was faster
        _remove(part)
    return folder


def _write(package: Path, content: Mapping[str, bytes]) -> None:
    """Write read-only files. Their time is made from their content: caches of other content are never valid."""
    for name, body in content.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        when = int(hashlib.sha256(body).hexdigest()[:7], 16)
        os.utime(path, (when, when))
        path.chmod(0o444)


def _copy_caches(previous: Path, package: Path, content: Mapping[str, bytes]) -> None:
    """Copy what was compiled from the files that have the same content in another snapshot."""
    for caches in previous.rglob(CACHES):
        folder = caches.parent.relative_to(previous)
        for compiled in caches.iterdir():
            source = folder / f"{compiled.name.partition('.')[0]}.py"
            with contextlib.suppress(OSError):
                if content.get(source.as_posix()) == (previous / source).read_bytes():
                    (package / folder / CACHES).mkdir(exist_ok=True)
                    shutil.copyfile(compiled, package / folder / CACHES / compiled.name)


def _newest(root: Path) -> list[Path]:
    """Return the snapshots in a folder, the most recently used first."""
    times: dict[Path, float] = {}
    for path in root.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            times |= {path: path.stat().st_mtime} if "." not in path.name else {}
    return sorted(times, key=lambda path: times[path], reverse=True)


@contextlib.contextmanager
def _in_use(folder: Path) -> Iterator[None]:
    mark = folder / f"used.{me()}"
    mark.touch()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            mark.unlink()


def _evict(root: Path) -> None:
    """Remove the snapshots that were not used for longest, and those of killed processes that are not complete."""
    for folder in _newest(root)[KEPT:]:
        if not any(_counts_as_use(mark) for mark in folder.glob("used.*")):
            _remove(folder)
    for folder in root.glob("*.*"):
        if abandoned(folder.name):
            _remove(folder)


def _counts_as_use(mark: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return not abandoned(mark.name) and time.time() - mark.stat().st_mtime < LONGEST
    return False


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


# -- the commit --------------------------------------------------------------------------------------------------------


def _described(folder: Path, package: Path, content: Mapping[str, bytes]) -> Program:
    """Return the facts about a package with this content. folder : where it is imported from."""
    commit, dirty, why = _commit(package, content)
    return Program(str(folder), str(package), _digest(content), commit, dirty, why)


def _commit(package: Path, content: Mapping[str, bytes]) -> tuple[str, bool, str]:
    """Return the commit of the package's own repository, whether its files differ, and why there is no commit.

    The content is compared with the commit itself, so a checkout in the meantime cannot make it look unchanged.
    """
    top = package.parent
    try:
        where = _git(top, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        if len(where) != 2 or Path(where[0]).resolve() != top or not _is_own(top):
            return "", False, NO_REPOSITORY
        listed = _git(top, "ls-tree", "-r", "-z", where[1], "--", PACKAGE, SPECS)
    except (OSError, subprocess.SubprocessError) as error:
        outside = "not a git repository" in str(getattr(error, "stderr", ""))
        return "", False, NO_REPOSITORY if outside else NO_GIT
    blobs = {}
    for line in listed.split("\0")[:-1]:
        facts, _, name = line.partition("\t")
        if all(map(_counts, name.split("/"))):
            blobs[name] = facts.split()[2]
    if f"{PACKAGE}/__init__.py" not in blobs:
        return "", False, NO_REPOSITORY
    here = {f"{PACKAGE}/{name}": body for name, body in content.items()}
    here |= {f"{SPECS}/{name}": body for name, body in read(top / SPECS).items()}
    added = any(name.endswith((".py", ".yaml")) for name in here.keys() - blobs.keys())
    changed = any(name not in here or blob not in _blobs(here[name], len(blob)) for name, blob in blobs.items())
    return where[1], added or changed, ""


def _is_own(top: Path) -> bool:
    """Return whether a repository is that of this package, not one that contains a copy of it."""
    with contextlib.suppress(OSError):
        text = (top / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
        return re.search(rf'^name\s*=\s*"{PACKAGE}"', text, re.MULTILINE) is not None
    return False


def _git(folder: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout


def _blobs(body: bytes, digits: int) -> Iterator[str]:
    """Yield the names that git can give a file's content: as it is, and with the line ends that git stores."""
    for stored in (body, body.replace(b"\r\n", b"\n")):
        yield hashlib.new("sha1" if digits == 40 else "sha256", b"blob %d\0" % len(stored) + stored).hexdigest()
