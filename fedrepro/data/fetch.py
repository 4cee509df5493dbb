"""Download a dataset from its official addresses: mirrors, retries, resumption, hash check, one process at a time.

Files are downloaded to ``.downloads/<dataset>/`` in the data home and imported by ``imports.adopt`` like any other
copy. If no hash is published, the first download prints its sha256 and is only kept if the user accepts it; the hash is
then stored in ``accepted.json``, and later downloads must match it.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.data.copies import CopyState, manifest, sha256, source, state
from fedrepro.data.data_home import home, locked, room_for, writable
from fedrepro.data.imports import adopt, is_web_page
from fedrepro.data.source import FileSource, Remote
from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.progress import human

FINAL = (400, 401, 403, 404, 405, 406, 410, 451)  # answers that another try will not change


@dataclass(frozen=True)
class Patience:
    """Limits of a download: attempts per address, seconds of the first pause (it doubles), seconds without a byte.

    piece : bytes read at a time, which is the largest loss by a broken connection.
    """

    attempts: int = 5
    wait: float = 1.0
    timeout: float = 30.0
    piece: int = 1 << 18


class Failed(Exception):
    """One address did not provide the file; the message states the reason."""


def fetch(
    name: str,
    *,
    accept: bool = False,
    progress: bool = True,
    patience: Patience | None = None,
    say: Callable[[str], None] = print,
) -> CopyState:
    """Download and import the dataset ``name``; do nothing if the official copy exists.

    accept : keep files without a published hash. Raises UserError if no address has the right file; a file with a wrong
    hash is not kept.
    """
    entry, patience = source(name), patience or Patience()
    with locked(f"{name}.fetch"):
        now = state(name)
        if _complete(entry, now):
            say(f"{name} is already in the data home")
            return now
        folder = writable(home() / ".downloads" / name)
        paths = [_first(entry, remote, folder, patience, progress, say) for remote in entry.files]
        _require_accepted(entry, paths, accept)
        copy = adopt(name, paths, how="fetched")
        shutil.rmtree(folder)
        return copy


def _complete(entry: FileSource, now: CopyState) -> bool:
    """Return whether nothing is left to fetch: all official files exist, or a complete copy with their content."""
    record = manifest(entry.name)
    if record is None or now.state not in ("present", "variant"):
        return False
    names = {file["path"] for file in record.files}
    fetched = record.how == "fetched" and all(remote.file in names for remote in entry.files)
    return fetched or (now.state == "present" and not record.facts.get("notes"))


def _first(
    entry: FileSource, remote: Remote, folder: Path, patience: Patience, progress: bool, say: Callable[[str], None]
) -> Path:
    """Return the file from the first address that has it."""
    known = remote.hash or _accepted().get(f"{entry.name}/{remote.file}")
    reasons = []
    for url in remote.urls:
        try:
            return _from(url, entry, remote, known, folder, patience, progress)
        except Failed as failure:
            reasons.append(f"{url}: {failure}")
            say(f"{url}: {failure}")
    raise UserError(
        f"{entry.name}: {remote.file} could not be fetched; no part of it was kept.\n  "
        + "\n  ".join(reasons)
        + f"\nTry again later, or get a copy elsewhere and 'fedrepro data import {entry.name} PATH' ({entry.layouts})."
    )


def _from(
    url: str, entry: FileSource, remote: Remote, known: str | None, folder: Path, patience: Patience, progress: bool
) -> Path:
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    collection = pooch.create(folder, base_url="", registry={remote.file: known}, urls={remote.file: url})
    part = folder / f"{remote.file}.part"
    transfer = _Transfer(part, known, entry.limit, patience, progress, f"{entry.name}: {remote.file}")
    return Path(collection.fetch(remote.file, downloader=transfer))


@dataclass
class _Transfer:
    """Pooch's downloader: streams one address into ``part`` and resumes an earlier attempt."""

    part: Path
    known: str | None
    limit: int
    patience: Patience
    progress: bool
    label: str

    def __call__(self, url: str, output_file: Any, collection: Any) -> None:
        import requests
        import urllib3

        wait = self.patience.wait
        for attempt in range(1, self.patience.attempts + 1):
            try:
                self._stream(url)
                break
            except requests.exceptions.TooManyRedirects as error:
                raise Failed("redirected without end") from error
            except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    raise UserError(f"the disk of {home()} is full") from error
                if attempt == self.patience.attempts:
                    raise Failed(f"{_reason(error)} ({attempt} tries)") from error
                time.sleep(wait)
                wait *= 2
        self._check()
        os.replace(self.part, output_file)
        self._validator.unlink(missing_ok=True)

    @property
    def _validator(self) -> Path:
        return self.part.with_name(f"{self.part.name}.validator")

    def _stream(self, url: str) -> None:
        import requests
        from tqdm import tqdm

        have = self._resumable()
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if self.known is None:
                headers["If-Range"] = self._validator.read_text(encoding="utf-8")
        with requests.get(url, headers=headers, stream=True, timeout=self.patience.timeout) as answer:
            if answer.status_code == 416:  # our part does not fit the file there: start over
                self.part.unlink(missing_ok=True)
                raise requests.exceptions.ConnectionError("the part already here does not fit")
            if answer.status_code in FINAL:
                raise Failed(f"the server answers {answer.status_code} {answer.reason}")
            answer.raise_for_status()
            if not (answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")):
                have = 0
            length = answer.headers.get("Content-Length")
            total = None if length is None else have + int(length)
            room_for((total or 0) - have, self.label)
            self._remember(answer.headers)
            with (
                self.part.open("ab" if have else "wb") as file,
                tqdm(
                    total=total, initial=have, unit="B", unit_scale=True, desc=self.label, disable=not self.progress
                ) as bar,
            ):
                for piece in iter(lambda: answer.raw.read(self.patience.piece, decode_content=False), b""):
                    file.write(piece)
                    bar.update(len(piece))
                    if file.tell() > self.limit:
                        raise Failed(f"it is larger than {human(self.limit)}, far more than this dataset")
            received = self.part.stat().st_size
            if total is not None and received < total:
                raise requests.exceptions.ConnectionError(f"the connection ended after {received:,} of {total:,} bytes")

    def _resumable(self) -> int:
        """Return the bytes of an earlier attempt that can be resumed: its hash or the server's tag identifies it."""
        if not self.part.exists() or (self.known is None and not self._validator.exists()):
            return 0
        return self.part.stat().st_size

    def _remember(self, headers: Any) -> None:
        tag = headers.get("ETag") or headers.get("Last-Modified")
        if tag and not tag.startswith("W/"):
            self._validator.write_text(tag, encoding="utf-8")
        else:
            self._validator.unlink(missing_ok=True)

    def _check(self) -> None:
        import pooch

        if is_web_page(self.part):
            self._discard()
            raise Failed("the server sent a web page instead of the file")
        if self.known is None:
            return
        algorithm, expected = self.known.split(":")
        got = pooch.file_hash(str(self.part), alg=algorithm)
        if got != expected:
            self._discard()
            raise Failed(
                f"wrong {algorithm}, expected {expected}, got {got}: another file, or altered during the download"
            )

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self._validator.unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error):
        return "no answer in time"
    if isinstance(error, requests.exceptions.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if "the connection ended" in str(error) or "the part already" in str(error):
        return str(error)
    if "IncompleteRead" in str(error):
        return "the connection ended before the file did"
    return f"no connection ({type(error).__name__})"


def _accepted() -> dict[str, str]:
    try:
        return dict(json.loads((home() / "accepted.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UserError(f"{home() / 'accepted.json'} cannot be read ({error}); delete it to start over") from error


def _require_accepted(entry: FileSource, paths: list[Path], accept: bool) -> None:
    """Raise UserError for files without a published hash, unless they are or were accepted."""
    accepted = _accepted()
    new = {
        f"{entry.name}/{remote.file}": f"sha256:{sha256(path)}"
        for remote, path in zip(entry.files, paths, strict=True)
        if remote.hash is None and f"{entry.name}/{remote.file}" not in accepted
    }
    if not new:
        return
    if not accept:
        shown = "\n  ".join(f"{key.split('/', 1)[1]}  {digest}" for key, digest in new.items())
        raise UserError(
            f"{entry.name}: no hash is published for these files; what was downloaded is\n  {shown}\n"
            "Compare with a copy that you trust if possible, then keep them with "
            f"'fedrepro data fetch {entry.name} --accept' (they are not downloaded again)."
        )
    with locked("accepted"):
        text = json.dumps({**_accepted(), **new}, indent=1, sort_keys=True) + "\n"
        atomically(home() / "accepted.json", text.encode())
