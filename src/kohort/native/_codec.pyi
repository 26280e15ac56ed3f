# SPDX-License-Identifier: Apache-2.0
# The codec in C, as `kohort.wire.native_codec` uses it. It is there where it was built.

from collections.abc import Callable
from typing import Any, TypeAlias, final

_Row: TypeAlias = tuple[str, str, bool, bool, bool, bool, bool, int, bool, Any, Layout | None]

REVISION: int

def columns_class(cls: type[Any], /) -> None: ...

@final
class Layout:
    def __new__(cls, message: type[Any], flexible: bool, rows: tuple[_Row, ...]) -> Layout: ...

@final
class Decoder:
    def __new__(
        cls,
        layout: Layout,
        most: int,
        lenient: bool,
        hand_over: Callable[[bytes, int], tuple[Any, int]],
    ) -> Decoder: ...
    def decode(self, data: bytes, start: int, /) -> tuple[Any, int]: ...

@final
class Encoder:
    def __new__(cls, layout: Layout, array: int, hand_over: Callable[..., Any]) -> Encoder: ...
    def encode(self, message: Any, /) -> bytes: ...
    def elements(self, message: Any, /) -> bytes: ...
    def around(self, message: Any, count: int, /) -> tuple[bytes, bytes]: ...
