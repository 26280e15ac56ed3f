# The codec in C, as `kohort.wire.native_codec` uses it. It is there where it was built.

from typing import Any, TypeAlias, final

_Row: TypeAlias = tuple[str, str, bool, bool, bool, bool, bool, int, bool, Any, Layout | None]

@final
class Layout:
    def __new__(cls, message: type[Any], flexible: bool, rows: tuple[_Row, ...]) -> Layout: ...
