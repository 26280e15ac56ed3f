# SPDX-License-Identifier: Apache-2.0
"""An S3 of moto."""

from tests.pipeline.stores.faulty import Faulty

NAME = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
"""Of nobody: what is asked here never leaves this machine."""

_CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


class Bucket(Faulty):
    """A running server."""

    start = f"s3://{NAME}/"
    writing = swapping = "PUT"

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        super().__init__(DomainDispatcherApplication(create_backend_app))
        self.url = f"http://{self.address}"

    def be_blind(self, environ, start):
        for name in _CONDITIONS:
            environ.pop(name, None)
        return self._app(environ, start)

    def remove(self, objects, key):
        """What is swapped goes."""
        objects.delete([key], "")

    def is_flip(self, place, asked, path):
        """Whether it makes a manifest count."""
        return (asked, path) == ("PUT", f"/{NAME}/{place.key}/manifest.json")

    def is_listing(self, asked, path):
        """Whether it asks for the files of a folder."""
        return asked != "GET" or path.endswith(NAME)
