"""A server on the loopback that fails, stalls, truncates and redirects on request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """``server.routes[path] = behaviour``; ``server.requests`` contains the (path, Range header) of each request."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, self.headers.get("Range")))
                outer.routes.get(self.path, status(404))(self)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


def _send(handler: BaseHTTPRequestHandler, code: int, body: bytes, **headers: str) -> None:
    handler.send_response(code)
    headers.setdefault("Content_Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def whole(body: bytes, tag: str = '"1"') -> Callable[[BaseHTTPRequestHandler], None]:
    """The file; answers Range requests as a good server does."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked, same = handler.headers.get("Range"), handler.headers.get("If-Range") in (None, tag)
        if asked and same:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                _send(handler, 416, b"", Content_Range=f"bytes */{len(body)}")
                return
            span = f"bytes {start}-{len(body) - 1}/{len(body)}"
            _send(handler, 206, body[start:], ETag=tag, Content_Range=span)
        else:
            _send(handler, 200, body, ETag=tag)

    return answer


def without_ranges(body: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """The whole file, whatever the request is."""
    return lambda handler: _send(handler, 200, body)


def status(code: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """An error."""
    return lambda handler: _send(handler, code, b"sorry")


def page() -> Callable[[BaseHTTPRequestHandler], None]:
    """A login page with status 200."""
    return lambda handler: _send(handler, 200, b"\n<!DOCTYPE html>\n<html><body>please log in</body></html>")


def redirect(path: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """302 to another path."""
    return lambda handler: _send(handler, 302, b"", Location=path)


def truncated(body: bytes, size: int, tag: str = '"1"') -> Callable[[BaseHTTPRequestHandler], None]:
    """Announces the whole file, sends ``size`` bytes and hangs up."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _send(handler, 200, body[:size], ETag=tag, Content_Length=str(len(body)))
        handler.close_connection = True

    return answer


def stalled(server: Server, body: bytes, size: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """Sends ``size`` bytes and then nothing, holding the line."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        truncated(body, size)(handler)
        handler.wfile.flush()
        server.closing.wait(5)

    return answer


def then(*behaviours: Callable[[BaseHTTPRequestHandler], None]) -> Callable[[BaseHTTPRequestHandler], None]:
    """One behaviour after another; the last one stays."""
    left = list(behaviours)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)
