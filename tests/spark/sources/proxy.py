# SPDX-License-Identifier: Apache-2.0
"""Something between clients and a broker that has the faults of a network."""

import asyncio
import threading


class Proxy:
    """Passes connections on to a port of loopback.

    `breaks_after` closes each connection after so many bytes of answers; `is_silent` loses all
    answers. Both may be changed at any time. `broken` counts the connections it has closed.
    """

    def __init__(self):
        self.target = 0
        self.breaks_after = None
        self.is_silent = False
        self.broken = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _run(self, what):
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _end(self):
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader, writer):
        there = None
        try:
            back, there = await asyncio.open_connection("127.0.0.1", self.target)
            await asyncio.gather(self._requests(reader, there), self._answers(back, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, there):
                if one is not None:
                    one.transport.abort()

    async def _requests(self, reader, there):
        while data := await reader.read(1 << 16):
            there.write(data)
        raise ConnectionResetError

    async def _answers(self, back, writer):
        passed = 0
        while data := await back.read(1 << 16):
            if self.is_silent:
                continue
            if self.breaks_after is not None and passed + len(data) > self.breaks_after:
                writer.write(data[: self.breaks_after - passed])
                await writer.drain()
                self.broken += 1
                raise ConnectionResetError
            passed += len(data)
            writer.write(data)
        raise ConnectionResetError
