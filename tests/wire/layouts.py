# SPDX-License-Identifier: Apache-2.0
"""Upstream's layouts as facts: names, types, versions,
nullability, tags, defaults (tests/data/README.md).
"""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from kohort.wire.schema import Field, Primitive, Versions, fields_of

OWN_TAGS = 20000  # tags from here on are ours, and APIs with such keys: upstream has none of them
TABLE = Path(__file__).parents[1] / "data" / "layouts.json.gz"
_ZERO = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": bytes(16),
    "float64": 0.0,
}


@cache
def layouts() -> dict[str, Any]:
    with gzip.open(TABLE, "rt", encoding="utf-8") as text:
        found: dict[str, Any] = json.load(text)
    return found


def facts_of(cls: type[Any], within: Versions) -> list[dict[str, Any]]:
    """What a class of ours says, in comparable form. Ranges count only
    inside the message's versions.
    """
    return [
        _facts(field, within)
        for field in fields_of(cls)
        if field.tag is None or field.tag < OWN_TAGS
    ]


def expected(fields: list[dict[str, Any]], within: Versions) -> list[dict[str, Any]]:
    """What upstream's table says, in the same form."""
    return [_expected(field, within) for field in fields]


def is_untold(field: Field, value: Any) -> bool:
    """Whether a field is one of our tags and says nothing, so that it is not on the wire."""
    return field.tag is not None and field.tag >= OWN_TAGS and value == field.default


def _span(versions: Versions, within: Versions) -> list[int]:
    first, last = max(versions.first, within.first), min(versions.last, within.last)
    return list(range(first, last + 1))


def _facts(field: Field, within: Versions) -> dict[str, Any]:
    primitive = isinstance(field.of, Primitive)
    versions = _span(field.versions, within)
    nullable = [one for one in _span(field.nullable, within) if one in versions]
    return {
        "name": field.name,
        "type": field.of.name if primitive else "struct",
        "array": field.array,
        "versions": versions,
        "nullable": nullable,
        "tag": field.tag,
        "tagged": [one for one in _span(field.tagged, within) if one in versions],
        "default": field.default if primitive or field.array or field.default is None else "struct",
        "classic": field.classic,
        "fields": [] if primitive else facts_of(field.of, within),
    }


def _expected(field: dict[str, Any], within: Versions) -> dict[str, Any]:
    versions = _span(Versions.of(field["versions"]), within)
    default = field.get("default", "unset")
    if field["array"]:
        default = [] if default == "unset" else default
    elif field["type"] == "struct":
        default = "struct" if default == "unset" else default
    elif default == "unset":
        default = _ZERO.get(field["type"], 0)
    nullable = _span(Versions.of(field["nullable"]), within) if "nullable" in field else []
    return {
        "name": field["name"],
        "type": field["type"],
        "array": field["array"],
        "versions": versions,
        "nullable": [one for one in nullable if one in versions],
        "tag": field.get("tag"),
        "tagged": _span(Versions.of(field["tagged"]), within) if "tag" in field else [],
        "default": default,
        "classic": field.get("classic", False),
        "fields": expected(field.get("fields", []), within),
    }
