# SPDX-License-Identifier: Apache-2.0
"""How clients show themselves, and what is said of one that nobody has closed."""

import asyncio
import warnings
from collections.abc import Mapping, Sequence

from kohort.client.network.address import Address


class Client:
    """A repr, and a ResourceWarning for one that is started and never closed.

    `_loop` is the event loop in which it was started. These have defaults here, since what a
    constructor has refused is deleted as well.
    """

    _addresses: Sequence[Address] = ()
    _loop: asyncio.AbstractEventLoop | None = None
    _closed = False
    _to_close = "use `async with`, or await close()"

    def _details(self) -> Mapping[str, object]:
        """What its repr says of it. Settings may come to hold secrets, so they are not all here."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._details().items() if value]
        state = "closed" if self._closed else "not started" if self._loop is None else "open"
        where = ",".join(map(str, self._addresses))
        return f"<{' '.join([type(self).__name__, *shown])} at {where}, {state}>"

    def __del__(self) -> None:
        if self._loop is not None and not self._closed:
            # As asyncio says it of a transport. Python shows it with -X dev, and pytest does.
            warnings.warn(
                f"unclosed {self!r}: {self._to_close}",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
