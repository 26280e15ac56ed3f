"""What every call of the admin client needs: the cluster, and the time that it may take."""

import asyncio

from kohort.client.lifetime import Client
from kohort.client.network.cluster import Cluster


class AdminCalls(Client):
    """The base of each part of `AdminClient`: its constructor sets what these need."""

    _cluster: Cluster
    _timeout_s: float

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the admin client is closed: make another one")

    def _deadline(self) -> float:
        self._check_open()
        self._loop = asyncio.get_running_loop()
        return self._loop.time() + self._timeout_s
