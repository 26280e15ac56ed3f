# SPDX-License-Identifier: Apache-2.0
"""Plain text in, TLS out: `tls_proxy.py PORT CA`, for a load client that knows no TLS.

Without the file of an authority it speaks plain text on both sides: what it does to the order and
the number of requests is then the same. It prints the port on which it listens. Its own time is not
the server's, which is what is counted.
"""

import asyncio
import ssl
import sys


class Side(asyncio.Protocol):
    """What comes from one side goes to the other as it came: a request stays a record of TLS."""

    def __init__(self, other=None):
        self.other, self.transport, self.early = other, None, []

    def connection_made(self, transport):
        self.transport = transport
        for data in self.early:
            transport.write(data)

    def write(self, data):
        if self.transport is None:
            self.early.append(data)
        else:
            self.transport.write(data)

    def data_received(self, data):
        self.other.write(data)

    def connection_lost(self, _):
        if self.other.transport is not None:
            self.other.transport.close()


async def main(port, authority):
    loop, connecting = asyncio.get_running_loop(), set()
    tls = {}
    if authority:
        context = ssl.create_default_context(cafile=authority)
        tls = {"ssl": context, "server_hostname": "localhost"}

    def accept():
        near, far = Side(), Side()
        near.other, far.other = far, near
        task = loop.create_task(loop.create_connection(lambda: far, "127.0.0.1", port, **tls))
        connecting.add(task)
        task.add_done_callback(connecting.discard)
        return near

    server = await loop.create_server(accept, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), "".join(sys.argv[2:])))
