"""A message class and a version become two straight-line functions: encode and decode.

The source is made at first use and kept where tracebacks and debuggers find it. Runs of
fixed-width fields are
one unpack; an array of small structs whose strings are all empty, which is what a commit or a
fetch of offsets
looks like, is one unpack for all of them.

Every byte may be hostile. Lengths and counts are checked for their sign; a slice beyond the end
is short but
moves the position past it, so that the next read, or the check at the end, refuses. No loop runs
further than
there are bytes, and nothing recurses.
"""

import linecache
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count, groupby, starmap
from struct import Struct
from typing import Any

import msgspec

from kohort.errors import WireError
from kohort.wire.schema import Field, Primitive, fields_of

FEW = 33  # an array of fewer numbers is read by a struct of its own size

Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes, int], tuple[Any, int]]


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and the position behind it."""
    result = shift = 0
    while shift < 35:
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, position
        shift += 7
    raise WireError(f"a varint at byte {position - 5} is longer than five bytes")


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_LENGTHS = [uvarint(length + 1) for length in range(1024)]


def _compact_length(length: int) -> bytes:
    """How a flexible version writes the length of a string or an array: one more than it is."""
    return _LENGTHS[length] if length < 1024 else uvarint(length + 1)


def _refuse(what: str, length: int) -> WireError:
    return WireError(f"{what} has length {length}, expected 0 or more")


def _skip_tag(data: bytes, position: int) -> tuple[int, int, int]:
    """The number of the next tagged field, where its value starts and where it ends."""
    tag, position = read_uvarint(data, position)
    size, position = read_uvarint(data, position)
    return tag, position, position + size


_GLOBALS: dict[str, Any] = {
    "WireError": WireError,
    "compact_length": _compact_length,
    "read_uvarint": read_uvarint,
    "refuse": _refuse,
    "skip_tag": _skip_tag,
    "starmap": starmap,
    "uvarint": uvarint,
    "LENGTHS": _LENGTHS,
}


class _Source:
    """The text of a function under construction, with the constants it refers to."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.indent = 1
        self.names = count(1)
        self.constants: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self.names)}"

    def constant(self, prefix: str, value: Any) -> str:
        name = self.name(prefix)
        self.constants[name] = value
        return name

    def unpacker(self, formats: str, method: str = "unpack_from") -> str:
        name = f"{method}_{formats.replace('?', 't')}"
        self.constants[name] = getattr(Struct(">" + formats), method)
        return name

    def nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def tagged(self, field: Field) -> bool:
        return self.flexible and self.version in field.tagged

    def compact(self, field: Field) -> bool:
        return self.flexible and not field.classic

    def split(self, fields: tuple[Field, ...]) -> tuple[list[Field], list[Field]]:
        """The fields that this version has: those in wire order, and those among the tags."""
        present = [field for field in fields if self.version in field.versions]
        plain = [field for field in present if not self.tagged(field)]
        return plain, sorted((f for f in present if self.tagged(f)), key=lambda f: f.tag or 0)

    def text(self, head: str) -> str:
        return "\n".join([head, *self.lines, ""])


def _fixed(field: Field) -> bool:
    return not field.array and isinstance(field.of, Primitive) and bool(field.of.format)


def _runs(fields: list[Field]) -> Iterator[tuple[bool, list[Field]]]:
    for fixed, run in groupby(fields, _fixed):
        yield fixed, list(run)


# --- decoding


class _Decoder(_Source):
    def __init__(self, version: int, *, flexible: bool, lenient: bool) -> None:
        super().__init__(version, flexible=flexible)
        self.decode = '.decode("utf-8", "replace")' if lenient else ".decode()"

    def struct(self, cls: type[Any]) -> str:
        """Emit the reading of one struct; the answer is the expression that builds it."""
        plain, tagged = self.split(fields_of(cls))
        values: dict[str, str] = {}
        for fixed, run in _runs(plain):
            if fixed:
                names = [self.name("f") for _ in run]
                formats = "".join(field.of.format for field in run)
                self.line(f"{', '.join(names)}, = {self.unpacker(formats)}(b, p)")
                self.line(f"p += {Struct('>' + formats).size}")
                values.update(zip((field.name for field in run), names, strict=True))
            else:
                for field in run:
                    values[field.name] = self.value(field)
        if self.flexible:
            self.tags(tagged, values)
        arguments = [values.get(field.name) or self.default(field) for field in fields_of(cls)]
        return f"{self.constant('C', cls)}({', '.join(arguments)})"

    def default(self, field: Field) -> str:
        if isinstance(field.default, list):
            return "[]"
        if isinstance(field.default, msgspec.Struct):
            return f"{self.constant('C', type(field.default))}()"
        return repr(field.default)

    def tags(self, fields: list[Field], values: dict[str, str]) -> None:
        for field in fields:
            values[field.name] = target = self.name("t")
            self.line(f"{target} = {self.default(field)}")
        size = self.name("n")
        self.line(f"{size} = b[p]; p += 1")
        self.line(f"if {size}:")
        self.indent += 1
        self.line(f"if {size} > 127: {size}, p = read_uvarint(b, p - 1)")
        end, tag = self.name("e"), self.name("k")
        self.line(f"for _ in range({size}):")
        self.indent += 1
        self.line(f"{tag}, p, {end} = skip_tag(b, p)")
        for field in fields:
            self.line(f"if {tag} == {field.tag}:")
            self.indent += 1
            self.line(f"{values[field.name]} = {self.value(field, in_tag=True)}")
            self.indent -= 1
        self.line(f"p = {end}")
        self.indent -= 2

    def length(self, field: Field) -> str:
        """Emit the reading of a length or a count. A null reads as -1."""
        size = self.name("n")
        if self.compact(field):
            self.line(f"{size} = b[p] - 1; p += 1")
            self.line(f"if {size} > 126: {size}, p = read_uvarint(b, p - 1); {size} -= 1")
            return size
        formats = "h" if field.of is not None and _short(field) else "i"
        self.line(f"{size}, = {self.unpacker(formats)}(b, p); p += {2 if formats == 'h' else 4}")
        return size

    def value(self, field: Field, *, in_tag: bool = False) -> str:
        if _fixed(field):
            target = self.name("f")
            self.line(f"{target}, = {self.unpacker(field.of.format)}(b, p); p += {field.of.size}")
            return target
        if not field.array and not isinstance(field.of, Primitive):
            return self.nested(field, in_tag=in_tag)
        size = self.length(field)
        target = self.name("v")
        nullable = self.nullable(field)
        self.line(f"if {size} < 0:")
        self.indent += 1
        if nullable:
            if not self.compact(field):
                self.line(f"if {size} != -1: raise refuse({field.name!r}, {size})")
            self.line(f"{target} = None")
            self.indent -= 1
            self.line("else:")
            self.indent += 1
            self.filled(field, size, target)
            self.indent -= 1
        else:
            self.line(f"raise refuse({field.name!r}, {size})")
            self.indent -= 1
            self.filled(field, size, target)
        return target

    def nested(self, field: Field, *, in_tag: bool) -> str:
        if not self.nullable(field):
            return self.struct(field.of)
        target = self.name("v")
        null = "b[p] == 0" if in_tag else "b[p] > 127"
        self.line(f"if {null}: {target} = None; p += 1")
        self.line("else:")
        self.indent += 1
        self.line("p += 1")
        self.line(f"{target} = {self.struct(field.of)}")
        self.indent -= 1
        return target

    def filled(self, field: Field, size: str, target: str) -> None:
        """Emit the reading of a string, bytes or array whose length is known not to be negative."""
        if not field.array:
            decode = self.decode if field.of.name == "string" else ""
            self.line(f"{target} = b[p:p + {size}]{decode}; p += {size}")
        elif isinstance(field.of, Primitive):
            self.primitives(field, size, target)
        else:
            self.structs(field.of, size, target)

    def primitives(self, field: Field, size: str, target: str) -> None:
        kind: Primitive = field.of
        if kind.name == "uuid":
            self.line(f"if {size} * 16 > len(b) - p: raise refuse({field.name!r}, {size})")
            self.line(f"{target} = [b[i:i + 16] for i in range(p, p + {size} * 16, 16)]")
            self.line(f"p += {size} * 16")
        elif kind.format:
            few = self.constant("few", _unpackers(kind.format))
            many = self.unpacker(kind.format, "iter_unpack")
            self.line(f"if {size} < {FEW}: {target} = [*{few}[{size}](b, p)]")
            self.line(
                f"elif {size} * {kind.size} > len(b) - p: raise refuse({field.name!r}, {size})"
            )
            self.line(f"else: {target} = [x for x, in {many}(b[p:p + {size} * {kind.size}])]")
            self.line(f"p += {size} * {kind.size}")
        else:
            self.line(f"{target} = []")
            self.line(f"for _ in range({size}):")
            self.indent += 1
            element = field._replace(array=False, nullable=type(field.nullable)(1, 0))
            self.line(f"{target}.append({self.value(element)})")
            self.indent -= 1

    def structs(self, cls: type[Any], size: str, target: str) -> None:
        run = _strided(self, cls)
        if run is not None:
            self.line(f"if {size} > 1 and {run.test(size)}:")
            self.indent += 1
            self.line(f"{target} = {run.build(self, cls, size)}")
            self.line(f"p += {size} * {run.size}")
            self.indent -= 1
            self.line("else:")
            self.indent += 1
        append = self.name("a")
        self.line(f"{target} = []; {append} = {target}.append")
        self.line(f"for _ in range({size}):")
        self.indent += 1
        self.line(f"{append}({self.struct(cls)})")
        self.indent -= 1
        if run is not None:
            self.indent -= 1


def _short(field: Field) -> bool:
    return not field.array and field.of.name == "string"


@cache
def _unpackers(formats: str) -> list[Callable[[bytes, int], tuple[Any, ...]]]:
    """How to read 0, 1, 2, ... numbers at once: one call for a short array."""
    return [Struct(f">{size}{formats}").unpack_from for size in range(FEW)]


class _Strided:
    """An array of structs that are all alike: fixed fields, then empty strings, no tags.

    Then each has one size, and the bytes that say so stand at a fixed stride, where one comparison
    finds them all.
    """

    def __init__(self) -> None:
        self.formats = ""
        self.size = 0
        self.marks: list[tuple[int, int]] = []  # where, and which byte

    def mark(self, byte: int) -> None:
        self.marks.append((self.size, byte))
        self.formats += "x"
        self.size += 1

    def test(self, count_name: str) -> str:
        reach = f"p + {count_name} * {self.size}"
        tests = [f"{reach} <= len(b)"]
        tests += [
            f"b[p + {where}:{reach}:{self.size}] == {bytes([byte])!r} * {count_name}"
            for where, byte in self.marks
        ]
        return " and ".join(tests)

    def build(self, source: _Decoder, cls: type[Any], count_name: str) -> str:
        """The expression that makes all of them: what is behind the fixed fields is the default."""
        rows = f"b[p:p + {count_name} * {self.size}]"
        unpack = source.unpacker(self.formats, "iter_unpack")
        return f"list(starmap({source.constant('C', cls)}, {unpack}({rows})))"


def _strided(source: _Source, cls: type[Any]) -> _Strided | None:
    """The strided form of a struct, where a flexible version has one."""
    plain, tagged = source.split(fields_of(cls))
    if not source.flexible or tagged or not any(_fixed(field) for field in plain):
        return None
    run = _Strided()
    constant = False  # from the first text on: a text is empty, and what follows is its default
    for field in fields_of(cls):
        if field not in plain:
            constant = True
        elif _fixed(field):
            if constant:
                for byte in Struct(">" + field.of.format).pack(field.default):
                    run.mark(byte)
            else:
                run.formats += field.of.format
                run.size += field.of.size
        elif not field.array and isinstance(field.of, Primitive) and field.of.name == "string":
            if field.default != "":
                return None
            run.mark(1)
            constant = True
        else:
            return None
    run.mark(0)
    return run


# --- encoding


class _Encoder(_Source):
    def struct(self, cls: type[Any], of: str) -> None:
        """Emit the writing of one struct, held by the variable `of`."""
        plain, tagged = self.split(fields_of(cls))
        closed = self.flexible and not tagged
        runs = list(_runs(plain))
        for index, (fixed, run) in enumerate(runs):
            if fixed:
                formats = "".join(field.of.format for field in run)
                values = [f"{of}.{field.name}" for field in run]
                if (
                    closed and index == len(runs) - 1
                ):  # the empty tag section comes in the same pack
                    formats, values, closed = formats + "B", [*values, "0"], False
                self.line(f"w({self.unpacker(formats, 'pack')}({', '.join(values)}))")
            else:
                for field in run:
                    self.value(field, f"{of}.{field.name}")
        if tagged:
            self.tags(tagged, of)
        elif closed:
            self.line('w(b"\\0")')

    def tags(self, fields: list[Field], of: str) -> None:
        held = self.name("g")
        self.line(f"{held} = []")
        for field in fields:
            value = self.name("x")
            self.line(f"{value} = {of}.{field.name}")
            inner = not field.always
            if inner:
                self.line(f"if {value} != {self.constant('D', field.default)}:")
                self.indent += 1
            outer = self.name("w")
            part = self.name("o")
            self.line(f"{outer} = w; {part} = []; w = {part}.append")
            self.value(field, value, in_tag=True)
            self.line(f"w = {outer}; {part} = b''.join({part})")
            tag = f"uvarint({field.tag})"
            self.line(f"{held}.append({tag} + uvarint(len({part})) + {part})")
            if inner:
                self.indent -= 1
        self.line(f"w(uvarint(len({held}))); w(b''.join({held}))")

    def length(self, field: Field, size: str) -> str:
        if self.compact(field):
            return f"LENGTHS[{size}] if {size} < 1024 else compact_length({size})"
        return f"{self.unpacker('h' if _short(field) else 'i', 'pack')}({size})"

    def null(self, field: Field) -> str:
        if self.compact(field):
            return "b'\\0'"
        return repr(b"\xff\xff" if _short(field) else b"\xff\xff\xff\xff")

    def value(self, field: Field, of: str, *, in_tag: bool = False) -> None:
        if _fixed(field):
            self.line(f"w({self.unpacker(field.of.format, 'pack')}({of}))")
            return
        nullable = self.nullable(field)
        struct = not field.array and not isinstance(field.of, Primitive)
        if not nullable and field.nullable.first <= field.nullable.last and not struct:
            # null in newer versions (JoinGroup's ProtocolName): older ones say it with nothing
            of = f"({of} or {'[]' if field.array else repr(field.of.default)})"
        if nullable:
            held = self.name("x")
            self.line(f"{held} = {of}")
            null = ("b'\\0'" if in_tag else "b'\\xff'") if struct else self.null(field)
            self.line(f"if {held} is None: w({null})")
            self.line("else:")
            self.indent += 1
            of = held
        if struct:
            if nullable:
                self.line("w(b'\\1')")
            self.struct(field.of, of)
        else:
            self.filled(field, of)
        if nullable:
            self.indent -= 1

    def filled(self, field: Field, of: str) -> None:
        size = self.name("n")
        if not field.array:
            held = self.name("y")
            self.line(f"{held} = {of}{'.encode()' if field.of.name == 'string' else ''}")
            self.line(f"{size} = len({held})")
            self.line(f"w(({self.length(field, size)}) + {held})")
            return
        held = self.name("y")
        self.line(f"{held} = {of}; {size} = len({held})")
        self.line(f"w({self.length(field, size)})")
        if isinstance(field.of, Primitive) and field.of.name == "uuid":
            self.line(f"w(b''.join({held}))")
            return
        if isinstance(field.of, Primitive) and field.of.format:
            pack = self.unpacker(field.of.format, "pack")
            self.line(f"w(b''.join([{pack}(x) for x in {held}]))")
            return
        one = self.name("o")
        self.line(f"for {one} in {held}:")
        self.indent += 1
        if isinstance(field.of, Primitive):
            self.filled(field._replace(array=False), one)
        else:
            self.packed(field.of, one)
            self.struct(field.of, one)
        self.indent -= 1

    def packed(self, cls: type[Any], of: str) -> None:
        """Emit a short cut for a struct whose strings are all empty: then it is one pack."""
        run = _strided(self, cls)
        plain, _ = self.split(fields_of(cls))
        texts = [field for field in plain if not _fixed(field)]
        if run is None or not texts:
            return
        formats = "".join(field.of.format if _fixed(field) else "B" for field in plain)
        values = [f"{of}.{field.name}" if _fixed(field) else "1" for field in plain]
        empty = " and ".join(f"{of}.{field.name} == ''" for field in texts)
        self.line(f"if {empty}:")
        pack = self.unpacker(formats + "B", "pack")
        self.line(f"    w({pack}({', '.join(values)}, 0)); continue")


# --- the doors


def decoder_source(
    cls: type[Any], version: int, *, lenient: bool = False
) -> tuple[str, dict[str, Any]]:
    """The source of `decode(b, p)`, and the constants that it refers to."""
    source = _Decoder(version, flexible=version in cls.flexible, lenient=lenient)
    source.line(f"return {source.struct(cls)}, p")
    return source.text("def decode(b, p):"), source.constants


def encoder_source(cls: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """The source of `encode(m)`, and the constants that it refers to."""
    source = _Encoder(version, flexible=version in cls.flexible)
    source.line("out = []; w = out.append")
    source.struct(cls, "m")
    source.line("return b''.join(out)")
    return source.text("def encode(m):"), source.constants


def compile_function(
    verb: str, cls: type[Any], version: int, source: str, constants: dict[str, Any]
) -> Any:
    """The function, with its source where tracebacks look for it."""
    filename = f"<kohort {verb} {cls.__name__} v{version}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {**_GLOBALS, **constants}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102  (our own text, made above)
    return namespace[verb.rsplit(maxsplit=1)[-1]]
