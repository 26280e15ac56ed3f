"""An S3 of moto on loopback that can be told to answer badly: turn requests away, lose answers."""

import logging
import threading
from collections.abc import Callable
from contextlib import contextmanager

NAME = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
"""Of nobody: what is asked here never leaves this machine."""

Fault = Callable[[str, str], str | None]
"""Method and path of a request -> `away` for 503, `lost` for done and answered with 500, `blind`
for done whatever its condition says; None for what it should be."""
_CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


class Bucket:
    """A running server."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.fault: Fault | None = None
        self.asked: list[tuple[str, str]] = []
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _serve(self, environ, start):
        asked = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append(asked)
        fault = None if self.fault is None else self.fault(*asked)
        if fault == "blind":
            for name in _CONDITIONS:
                environ.pop(name, None)
        if fault not in ("away", "lost"):
            return self._app(environ, start)
        if fault == "lost":
            b"".join(self._app(environ, lambda *_: None))
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start("503 Slow Down" if fault == "away" else "500 Oops", [("Content-Length", "0")])
        return [b""]

    @contextmanager
    def failing(self, fault: Fault):
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    def close(self) -> None:
        self._server.shutdown()


def keys(place):
    """The names of all objects below a place."""
    from kohort.spark.stores import objects

    found = objects.listed(place.root.bucket, place.root.prefix)
    return {one.key.removeprefix(f"{place.root.prefix}/") for one in found}
