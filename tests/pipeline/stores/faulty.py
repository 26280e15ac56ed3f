# SPDX-License-Identifier: Apache-2.0
"""A store on loopback that can be told to answer badly: turn requests away, lose answers."""

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import contextmanager

Fault = Callable[[str, str], object]
"""What is asked and of which path -> `away` for 503, `lost` for done and answered with 500, `cut`
for done and not answered at all, `half` for an answer that breaks off in the middle, `blind` for
done whatever its condition says, a status and a body for an answer that nothing was done for; None
for what it should be."""


class Faulty:
    """A running server in front of an application of WSGI."""

    def __init__(self, app) -> None:
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.fault: Fault | None = None
        self.asked: list[tuple[str, str]] = []
        self._app = app
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def told(self, environ) -> tuple[str, str]:
        """What is asked, and of which path."""
        return environ["REQUEST_METHOD"], environ["PATH_INFO"]

    def be_blind(self, environ, start):
        """Do it whatever its condition says."""
        raise NotImplementedError

    def _serve(self, environ, start):
        asked = self.told(environ)
        self.asked.append(asked)
        fault = None if self.fault is None else self.fault(*asked)
        if fault is None:
            return self._app(environ, start)
        if fault == "blind":
            return self.be_blind(environ, start)
        if fault == "half":
            data = b"".join(self._app(environ, start))
            return [data[: len(data) // 2]]
        if fault in ("lost", "cut"):
            b"".join(self._app(environ, lambda *_: None))
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if fault == "cut":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        words = {
            "away": ("503 Slow Down", b""),
            "lost": ("500 Oops", b""),
            "cut": ("500 Oops", b""),
        }
        status, body = fault if isinstance(fault, tuple) else words[fault]
        start(status, [("Content-Length", str(len(body)))])
        return [body]

    @contextmanager
    def failing(self, fault: Fault):
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    def close(self) -> None:
        self._server.shutdown()


def once(what: str, fault: object, where: str = ""):
    """The first request of a kind goes wrong, whose path has `where` in it."""
    left = [fault]
    return lambda asked, path: left.pop() if asked == what and where in path and left else None


def keys(place):
    """The names of all objects below a place, but for those that are swapped."""
    root = place.root
    found = (one.key.removeprefix(f"{root.prefix}/") for one in root.objects.listed(root.prefix))
    return {one for one in found if one.partition("/")[0] not in ("manifest.json", "writer.json")}
