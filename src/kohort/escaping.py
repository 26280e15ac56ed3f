# SPDX-License-Identifier: Apache-2.0
"""Text that somebody else has chosen, shown so that every character of it is seen where it stands.

A name must not begin a line of a log, move a terminal's cursor, turn the direction of what stands
beside it, or look like another name because a character of it has no width.
"""

# What Unicode calls printable, and has no width: joiners, fillers, selectors of variants.
_IGNORABLE = frozenset(
    [
        *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164),
        *(*range(0xFE00, 0xFE10), 0xFFA0, *range(0xE0100, 0xE01F0)),
    ]
)
_SPACES = frozenset([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000])


class _Codes:
    """A table for `str.translate`. It keeps nothing: names are chosen by clients."""

    def __getitem__(self, code: int) -> int | str:
        character = chr(code)
        if character.isprintable() and code not in _IGNORABLE:
            return code
        return character.encode("unicode_escape").decode()


class _CodesButSpaces(_Codes):
    def __getitem__(self, code: int) -> int | str:
        return code if code in _SPACES else super().__getitem__(code)


_CODES, _CODES_BUT_SPACES = _Codes(), _CodesButSpaces()


def visible(text: str, *, spaces: bool = False) -> str:
    """The text with an escape, as Python writes it, for each character that would not be seen.
    `spaces` other than the usual one stay as they are, where lines may be laid out with them.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_CODES_BUT_SPACES if spaces else _CODES)
