# SPDX-License-Identifier: Apache-2.0
"""Builds the native codec: hatchling calls this for a wheel, and for an editable installation.

    python hatch_build.py      builds it in place, for a tree that is used as it is

Without a C compiler, or without Python's headers, a line says so, and the installation is pure: it
has the codec in Python. KOHORT_CODEC=native makes that an error, and KOHORT_CODEC=python makes a
pure wheel also where there is a compiler. docs/decisions/native-codec.md has the reasons for this
way of building.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
PACKAGE = Path("src", "kohort", "native")
MODULE = "kohort.native._codec"


class BuildError(Exception):
    """The codec cannot be built here."""


def build(folder: Path) -> Path:
    """Compile the codec into a folder; returns its file. Raises BuildError, with the reason."""
    if sys.implementation.name != "cpython":
        raise BuildError(f"it is for CPython, this is {sys.implementation.name}")
    try:
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext
        from setuptools.errors import BaseError, CCompilerError
    except ImportError as error:
        raise BuildError(f"setuptools is missing ({error})") from error
    sources = sorted((ROOT / PACKAGE).glob("*.c"))
    extension = Extension(MODULE, [path.relative_to(ROOT).as_posix() for path in sources])
    command = build_ext(Distribution({"name": "kohort", "ext_modules": [extension]}))
    with tempfile.TemporaryDirectory() as objects, contextlib.chdir(ROOT):
        command.build_temp = objects
        command.build_lib = objects
        command.ensure_finalized()
        try:
            command.run()
        except (BaseError, CCompilerError, OSError) as error:
            raise BuildError(" ".join(str(error).split())) from error
        built = Path(command.get_ext_fullpath(MODULE))
        return Path(shutil.move(built, folder / built.name))


def get_build_hook() -> type[Any]:
    """What hatchling asks a build script for. Its own classes are here only while it builds."""
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class NativeCodec(BuildHookInterface[Any]):
        """Adds the native codec to what is built."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            in_place = version == "editable"
            self._folder = ROOT / PACKAGE if in_place else Path(tempfile.mkdtemp())
            asked = os.environ.get("KOHORT_CODEC")  # as at run time: `kohort.native.choice`
            if asked == "python" and not in_place:
                return
            try:
                built = build(self._folder)
            except BuildError as error:
                if asked == "native":
                    raise
                self.app.display_warning(f"kohort: without the native codec: {error}")
                return
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            if not in_place:
                inside = PACKAGE.relative_to("src") / built.name
                build_data["force_include"][str(built)] = inside.as_posix()

        def finalize(self, version: str, *_: Any) -> None:
            if version != "editable":
                shutil.rmtree(self._folder, ignore_errors=True)

    return NativeCodec


if __name__ == "__main__":
    try:
        print(build(ROOT / PACKAGE).relative_to(ROOT))
    except BuildError as reason:
        sys.exit(f"kohort: without the native codec: {reason}")
