"""Downloading from servers that behave badly: what is kept, printed and left behind."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import multiprocessing

import pytest

from fedrepro.data import copies, imports, loading
from fedrepro.data.fetch import Patience, fetch
from fedrepro.data.source import Remote, sources
from fedrepro.errors import UserError
from tests import data_copies, data_server

pytestmark = pytest.mark.network
QUICK = Patience(attempts=3, wait=0.0, timeout=0.3, piece=100)


@pytest.fixture
def server():
    found = data_server.Server()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "home"


@pytest.fixture
def images(tmp_path):
    """The two files of a small MNIST, by name."""
    return {p.name: p.read_bytes() for p in sorted(data_copies.mnist(tmp_path / "copy", n=200).iterdir())}


@pytest.fixture
def body(images):
    return images["t10k-images-idx3-ubyte.gz"]


@pytest.fixture
def official(server, images, monkeypatch):
    """MNIST's source with the local server as its address(es), pinned to the small files or not."""

    def make(*mirrors: str, pinned: bool = True, hashes: dict[str, str] | None = None) -> None:
        names = {"images": "t10k-images-idx3-ubyte.gz", "labels": "t10k-labels-idx1-ubyte.gz"}
        server.routes.setdefault("/labels", data_server.whole(images[names["labels"]]))
        files = []
        for path, name in names.items():
            md5 = (hashes or {}).get(path) or hashlib.md5(images[name]).hexdigest()
            urls = mirrors if path == "images" and mirrors else (f"/{path}",)
            files.append(Remote(name, tuple(server.url(u) for u in urls), f"md5:{md5}" if pinned else None))
        monkeypatch.setitem(sources(), "mnist", dataclasses.replace(sources()["mnist"], files=tuple(files)))

    return make


def quietly(**more):
    said: list[str] = []
    return fetch("mnist", progress=False, patience=QUICK, say=said.append, **more), said


def leftovers(home):
    kept = (".locks", ".staging")
    return sorted(
        p.relative_to(home).as_posix()
        for p in home.rglob("*")
        if p.is_file() and p.relative_to(home).parts[0] not in kept
    )


def refused(home):
    with pytest.raises(UserError) as caught:
        quietly()
    assert copies.state("mnist").state == "absent"
    return str(caught.value)


def test_the_files_are_fetched_checked_and_taken_in(server, official, body, home):
    official()
    server.routes["/images"] = data_server.whole(body)
    copy, _ = quietly()
    assert copy.state == "variant"  # 200 images are not the 10,000
    assert loading.load("mnist", {"n": 20, "split": "test"}).X.shape == (784, 20)
    assert not (home / ".downloads" / "mnist").exists()
    record = json.loads((home / "mnist" / "manifest.json").read_text())
    assert record["how"] == "fetched"
    assert record["official"] is True
    assert record["files"][0]["sha256"] == hashlib.sha256(body).hexdigest()


def test_what_is_here_is_not_fetched_again(server, official, body):
    official()
    server.routes["/images"] = data_server.whole(body)
    first, _ = quietly()
    asked = len(server.requests)
    again, said = quietly()
    assert again == first
    assert said == ["mnist is already in the data home"]
    assert len(server.requests) == asked


def test_an_imported_part_does_not_stop_the_fetch_of_the_rest(server, official, body, tmp_path):
    official()
    server.routes["/images"] = data_server.whole(body)
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "other", n=30)])
    quietly()
    assert loading.load("mnist", {"n": 200, "split": "test"}).X.shape == (784, 200)


def test_the_second_mirror_is_used_when_the_first_fails(server, official, body):
    official("/gone", "/images")
    server.routes["/images"] = data_server.whole(body)
    _, said = quietly()
    assert said == [f"{server.url('/gone')}: the server answers 404 Not Found"]


def test_passing_errors_are_tried_again(server, official, body):
    official()
    server.routes["/images"] = data_server.then(
        data_server.status(503), data_server.status(500), data_server.whole(body)
    )
    copy, said = quietly()
    assert copy.state == "variant"
    assert said == []


def test_lasting_errors_are_told_with_every_address(server, official, home):
    official("/a", "/b")
    server.routes["/a"] = data_server.status(503)
    server.routes["/b"] = data_server.status(403)
    message = refused(home)
    assert message.startswith("mnist: t10k-images-idx3-ubyte.gz could not be fetched; no part of it was kept.")
    assert f"{server.url('/a')}: the server answers 503 Service Unavailable (3 tries)" in message
    assert f"{server.url('/b')}: the server answers 403 Forbidden" in message
    assert "Try again later, or get a copy elsewhere and 'fedrepro data import mnist PATH'" in message
    assert [path for path, _ in server.requests] == ["/a"] * 3 + ["/b"]


@pytest.mark.parametrize("harm", ["truncated", "stalled"])
def test_a_broken_transfer_goes_on_where_it_stopped(server, official, body, harm):
    official()
    first = data_server.truncated(body, 300) if harm == "truncated" else data_server.stalled(server, body, 300)
    server.routes["/images"] = data_server.then(first, data_server.whole(body))
    copy, _ = quietly()
    assert copy.state == "variant"
    assert server.requests[:2] == [("/images", None), ("/images", "bytes=300-")]


def test_a_later_fetch_goes_on_where_an_earlier_one_stopped(server, official, body, home):
    official()
    server.routes["/images"] = data_server.then(data_server.truncated(body, 300), data_server.status(503))
    refused(home)
    server.routes["/images"] = data_server.whole(body)
    server.requests.clear()
    copy, _ = quietly()
    assert copy.state == "variant"
    assert server.requests[0] == ("/images", "bytes=300-")


def test_a_server_without_ranges_sends_it_all_again(server, official, body):
    official()
    server.routes["/images"] = data_server.then(data_server.truncated(body, 300), data_server.without_ranges(body))
    assert quietly()[0].state == "variant"


def test_a_part_that_does_not_fit_is_dropped(server, official, body, home):
    official()
    folder = home / ".downloads" / "mnist"
    folder.mkdir(parents=True)
    (folder / "t10k-images-idx3-ubyte.gz.part").write_bytes(b"x" * (len(body) + 10))
    server.routes["/images"] = data_server.whole(body)
    assert quietly()[0].state == "variant"


def test_without_a_hash_only_the_same_version_is_gone_on_with(server, official, body, home):
    official(pinned=False)
    server.routes["/images"] = data_server.then(
        data_server.truncated(b"y" * len(body), 300, tag='"old"'), data_server.whole(body, tag='"new"')
    )
    quietly(accept=True)
    assert loading.load("mnist", {"n": 20, "split": "test"}).X.shape == (784, 20)


def test_redirects_are_followed_but_not_for_ever(server, official, body, home):
    official("/here")
    server.routes["/here"] = data_server.redirect("/there")
    server.routes["/there"] = data_server.redirect("/here")
    assert "redirected without end" in refused(home)
    server.routes["/there"] = data_server.whole(body)
    assert quietly()[0].state == "variant"


def test_a_wrong_hash_keeps_nothing_and_says_both(server, official, body, home):
    official(hashes={"images": "0" * 32})
    server.routes["/images"] = data_server.whole(body)
    message = refused(home)
    got = hashlib.md5(body).hexdigest()
    assert f"wrong md5, expected {'0' * 32}, got {got}: another file, or altered during the download" in message
    assert leftovers(home) == []


def test_a_web_page_is_recognised(server, official, home):
    official()
    server.routes["/images"] = data_server.page()
    assert "the server sent a web page instead of the file" in refused(home)
    official(pinned=False)
    assert "the server sent a web page instead of the file" in refused(home)
    assert leftovers(home) == []


def test_no_server_at_all(server, official, home):
    official()
    server.close()
    assert "no connection (ConnectionError) (3 tries)" in refused(home)


def test_more_bytes_than_the_dataset_can_have(server, official, body, home, monkeypatch):
    official()
    monkeypatch.setitem(sources(), "mnist", dataclasses.replace(sources()["mnist"], limit=1000))
    server.routes["/images"] = data_server.whole(b"z" * 300_000)
    assert "it is larger than 1.0 kB, far more than this dataset" in refused(home)


def test_a_file_without_published_hash_must_be_accepted_once(server, official, body, home):
    official(pinned=False)
    server.routes["/images"] = data_server.whole(body)
    message = refused(home)
    assert f"t10k-images-idx3-ubyte.gz  sha256:{hashlib.sha256(body).hexdigest()}" in message
    assert "then keep them with 'fedrepro data fetch mnist --accept' (they are not downloaded again)" in message
    asked = len(server.requests)
    copy, _ = quietly(accept=True)
    assert copy.state == "variant"
    assert len(server.requests) == asked
    copies.remove("mnist")
    quietly()  # the accepted hash is remembered
    copies.remove("mnist")
    server.routes["/images"] = data_server.whole(body + b"more")
    assert "wrong sha256" in refused(home)


def _fetch(urls):
    fetch("mnist", progress=False, patience=Patience(attempts=2, wait=0.0, timeout=5), say=lambda text: None)


def test_processes_that_fetch_at_once_download_once(server, official, body, monkeypatch, home):
    official()
    server.routes["/images"] = data_server.whole(body)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_fetch, args=(None,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert sorted(path for path, _ in server.requests) == ["/images", "/labels"]
    assert copies.state("mnist").state == "variant"
    assert {path.split("/")[0] for path in leftovers(home)} == {"mnist"}


def test_every_source_has_addresses_and_well_formed_hashes():
    for entry in sources().values():
        assert entry.files
        for remote in entry.files:
            assert all(url.startswith(("https://", "http://")) for url in remote.urls)
            assert len(set(remote.urls)) == len(remote.urls) >= 1
            if remote.hash:
                algorithm, digest = remote.hash.split(":")
                assert len(digest) == {"md5": 32, "sha256": 64}[algorithm]
                assert int(digest, 16) > 0
