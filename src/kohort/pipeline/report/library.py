# SPDX-License-Identifier: Apache-2.0
"""The script that draws the charts: Vega, Vega-Lite and what embeds them, as vl-convert carries
them.

It takes more than a second to put together and is the same every time, so it is kept. The name of
the file has its checksum: nobody shall get a page that is damaged.
"""

import os
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version

import vl_convert

from kohort.pipeline.stores.cache import cache_directory


@cache
def library() -> str:
    """The script; nothing in it ends the element that it stands in."""
    bundle = _kept_or_none() or _made()
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _made() -> str:
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    data = bundle.encode()
    target = cache_directory() / f"{_prefix()}{_checksum(data)}.js"
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.new")
    with suppress(OSError):  # then the next page takes a second longer
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(data)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    return bundle


def _kept_or_none() -> str | None:
    """One that is damaged goes."""
    with suppress(OSError):
        for path in cache_directory().glob(f"{_prefix()}*.js"):
            data = path.read_bytes()
            if path.name == f"{_prefix()}{_checksum(data)}.js":
                return data.decode()
            path.unlink()
    return None


def _prefix() -> str:
    return f"vega-{version('vl-convert-python')}-"


def _checksum(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
