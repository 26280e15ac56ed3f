# SPDX-License-Identifier: Apache-2.0
"""A cluster as the pipeline names it: its servers, and the file with the security of its clients.

`HOST:PORT,HOST:PORT?config=FILE`: the file has Java properties, in any dialect of clients, and is
read on every machine that asks the cluster. The text itself has no secret: it is kept in plans and
in progress, and it is shown.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.security_settings import is_about_security, security_of
from kohort.client.settings import addresses_of
from kohort.config import read_properties
from kohort.pipeline.sources.log_position import SourceError
from kohort.security.settings import NO_SECURITY, Security
from kohort.user_files import settings_text

CONFIG = "?config="


class ClusterPlace(NamedTuple):
    """`settings` are those of the file that are about security: there may be secrets in them."""

    addresses: list[Address]
    settings: Mapping[str, str]
    security: Security

    @property
    def servers(self) -> str:
        """The addresses alone, as other clients take them."""
        return ",".join(map(str, self.addresses))

    def cluster(self, client_id: str) -> Cluster:
        """The cluster, for the caller to close."""
        return Cluster(self.addresses, client_id=client_id, security=self.security)

    def __repr__(self) -> str:
        return f"ClusterPlace({self.servers!r}, {self.security!r})"


def cluster_place(text: str, security: Security = NO_SECURITY) -> ClusterPlace:
    """The cluster that this text names; its file counts before `security`. Raises SourceError."""
    servers, _, file = text.partition(CONFIG)
    try:
        addresses = addresses_of(servers)
    except ValueError as error:
        raise SourceError(str(error)) from None
    if not addresses:
        raise SourceError(f"{text!r} names no broker, expected host:port")
    if not file:
        return ClusterPlace(addresses, {}, security)
    try:
        found = read_properties(settings_text(file))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text of properties"
        raise SourceError(f"config {file} cannot be read: {why}") from None
    settings = {name: value for name, value in found.items() if is_about_security(name)}
    try:
        return ClusterPlace(addresses, settings, security_of(settings))
    except ValueError as error:
        raise SourceError(f"config {file}: {error}") from None
