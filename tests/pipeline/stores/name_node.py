# SPDX-License-Identifier: Apache-2.0
"""A real HDFS behind a server that can be told to answer badly, and leads to its data node too."""

import tempfile
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.pipeline.stores.faulty import Faulty
from tests.pipeline.stores.mini_hdfs import MiniHdfs

_DATA = "/data-node/"
_PASSED_ON = ("CONTENT_TYPE", "CONTENT_LENGTH")


class NameNode(Faulty):
    """What is asked of the name node is told by the operation of WebHDFS, `data OPERATION` is what
    is asked of the data node.
    """

    writing, swapping = "CREATE", "RENAME"

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(
            prefix="kohort-hdfs-", ignore_cleanup_errors=True
        )
        self._hdfs = MiniHdfs(Path(self._directory.name))
        super().__init__(self._forward)
        self.start = f"webhdfs://{self.address}/"

    @property
    def lives(self) -> bool:
        return self._hdfs.lives

    def told(self, environ):
        query = parse_qs(environ["QUERY_STRING"])
        operation = query["op"][0]
        before, _, path = environ["PATH_INFO"].partition("/webhdfs/v1")
        return f"data {operation}" if before else operation, path

    def be_blind(self, environ, start):
        """Say of a rename that it was done."""
        if self.told(environ)[0] != "RENAME":
            return self._forward(environ, start)
        found = b"".join(self._forward(environ, lambda *_: None))
        body = found.replace(b"false", b"true")
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    def remove(self, objects, key):
        """What is swapped goes."""
        objects.node.delete(key, recursive=True)

    def is_flip(self, place, asked, path):
        """Whether it makes a manifest count."""
        return asked == "RENAME" and path.startswith(f"/{place.key}/manifest.json/current-")

    def is_listing(self, asked, path):
        """Whether it asks for the files of a folder."""
        return asked not in ("OPEN", "data OPEN", "GETFILESTATUS") and (
            asked != "LISTSTATUS" or not path.endswith("/manifest.json")
        )

    def close(self) -> None:
        super().close()
        self._hdfs.close()
        self._directory.cleanup()

    def _forward(self, environ, start):
        where, uri = f"127.0.0.1:{self._hdfs.port}", environ["REQUEST_URI"]
        if uri.startswith(_DATA):
            where, _, rest = uri.removeprefix(_DATA).partition("/")
            uri = f"/{rest}"
        headers = {one.replace("_", "-"): environ[one] for one in _PASSED_ON if environ.get(one)}
        connection = HTTPConnection(where, timeout=60)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        connection.request(environ["REQUEST_METHOD"], uri, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        told = [(name, value) for name, value in answer.getheaders() if name == "Date"][:1]
        location = answer.getheader("Location")
        if location is not None:
            to = urlsplit(location)
            told.append(
                ("Location", f"http://{self.address}{_DATA}{to.netloc}{to.path}?{to.query}")
            )
        start(f"{answer.status} {answer.reason}", [*told, ("Content-Length", str(len(data)))])
        return [data]
