# SPDX-License-Identifier: Apache-2.0
"""What a certificate says (X.509, DER): its subject, its names, and how long it holds.

Python's `ssl` gives the certificate of a peer as bytes, and its own reading of it loses what a rule
needs: the order and the encoding of the subject's parts.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kohort.errors import KohortError
from kohort.escaping import visible

_BOOLEAN, _OCTETS, _OID, _SEQUENCE, _SET = 0x01, 0x04, 0x06, 0x30, 0x31
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_UTC_TIME = 0x17
_DNS_NAME, _IP_ADDRESS = 0x82, 0x87
_ALTERNATIVE_NAMES = bytes.fromhex("551d11")  # 2.5.29.17
_NAMES = {  # as java.security's X500Principal writes RFC 2253; all others are written as numbers
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS = {  # of the kinds that Java decodes; it writes all others as bytes
    0x0C: "utf-8",
    0x13: "ascii",  # printable
    0x14: "latin-1",  # teletex
    0x16: "ascii",
    0x1E: "utf-16-be",
}
_BLANKS = " \r"  # escaped at both ends, as by Java
_ESCAPED = ',+"\\<>;=#'


class CertificateError(KohortError, ValueError):
    """The bytes are no certificate."""


class Certificate(NamedTuple):
    """The fields of an X.509 certificate. `subject` and `issuer` are RFC 2253 text, empty where
    the certificate has none.

    `alternative_names` are GeneralNames as they are encoded, to be compared.
    """

    subject: str
    not_before: datetime
    not_after: datetime
    alternative_names: frozenset[bytes]
    issuer: str

    @property
    def host_names(self) -> list[str]:
        """The names and the addresses of hosts that it is for, for people."""
        from ipaddress import ip_address  # noqa: PLC0415  (who shows a certificate waits for it)

        found = []
        for name in self.alternative_names:
            element = next(_elements(name))
            if element.tag == _DNS_NAME:
                found.append(visible(element.content.decode("latin-1")))
            elif element.tag == _IP_ADDRESS and len(element.content) in (4, 16):
                found.append(str(ip_address(element.content)))
        return sorted(found)


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def read_certificate(der: bytes) -> Certificate:
    """The certificate in these bytes. Raises CertificateError."""
    try:
        outer = next(_elements(der))
        fields = list(_elements(next(_elements(outer.content)).content))
        if fields[0].tag == _VERSION:
            fields = fields[1:]
        not_before, not_after = (_time(one) for one in _elements(fields[3].content))
        return Certificate(
            _name(fields[4].content),
            not_before,
            not_after,
            _alternative_names(fields),
            _name(fields[2].content),
        )
    except (StopIteration, IndexError, ValueError) as error:
        raise CertificateError(f"{len(der)} bytes are no X.509 certificate: {error}") from error


def _elements(data: bytes) -> Iterator[_Element]:
    """The elements that stand one behind the other in these bytes."""
    at = 0
    while at < len(data):
        begin, tag, length = at, data[at], data[at + 1]
        at += 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(data[at : at + octets])
            at += octets
        if at + length > len(data):
            raise ValueError(f"an element of {length} bytes has {len(data) - at}")
        yield _Element(tag, data[at : at + length], data[begin : at + length])
        at += length


def _time(element: _Element) -> datetime:
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:  # years 1950 to 2049 (RFC 5280)
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _alternative_names(fields: list[_Element]) -> frozenset[bytes]:
    for field in fields:
        if field.tag == _EXTENSIONS:
            for extension in _elements(next(_elements(field.content)).content):
                parts = list(_elements(extension.content))
                if parts[0].content == _ALTERNATIVE_NAMES:
                    names = next(_elements(parts[-1].content))
                    return frozenset(one.whole for one in _elements(names.content))
    return frozenset()


def _name(content: bytes) -> str:
    """A Name as text: the last of its parts first (RFC 2253, 2.1)."""
    parts = [
        "+".join(_attribute(attribute) for attribute in _elements(part.content))
        for part in _elements(content)
    ]
    return ",".join(reversed(parts))


def _attribute(attribute: _Element) -> str:
    kind, value = _elements(attribute.content)
    numbers = _numbers(kind.content)
    name, encoding = _NAMES.get(numbers), _ENCODINGS.get(value.tag)
    if name is None or encoding is None:
        return f"{name or numbers}=#{value.whole.hex()}"
    return f"{name}={_escaped(value.content.decode(encoding))}"


def _numbers(content: bytes) -> str:
    """An object identifier with dots."""
    numbers, number = [], 0
    for octet in content:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    core = text.strip(_BLANKS)
    begin = len(text) - len(text.lstrip(_BLANKS)) if core else len(text)
    end = begin + len(core)
    escaped = (
        f"\\{letter}" if letter in _ESCAPED or not begin <= at < end else letter
        for at, letter in enumerate(text)
    )
    return "".join(escaped).replace("\0", r"\00")
