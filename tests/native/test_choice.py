# SPDX-License-Identifier: Apache-2.0
"""Which codec is used: KOHORT_CODEC says it, and one that is not here is refused in one line."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kohort.native import choice

EXTENSION = ModuleType("_codec")


@pytest.mark.parametrize(
    ("asked", "extension", "chosen"),
    [
        ("", EXTENSION, "native"),
        ("", None, "python"),
        ("python", EXTENSION, "python"),
        ("python", None, "python"),
        ("native", EXTENSION, "native"),
    ],
)
def test_what_is_chosen(asked, extension, chosen):
    assert choice.choose(asked, extension) == chosen


@pytest.mark.parametrize(
    ("asked", "extension", "words"),
    [
        ("native", None, "KOHORT_CODEC is native, and this installation has no native codec"),
        ("Native", EXTENSION, "KOHORT_CODEC is 'Native', expected python or native"),
        ("c", None, "KOHORT_CODEC is 'c', expected python or native"),
    ],
)
def test_what_is_refused(asked, extension, words):
    with pytest.raises(choice.CodecChoiceError, match=f"^{words}") as caught:
        choice.choose(asked, extension)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("asked", ["python", "native"])
def test_the_environment_says_it(asked):
    if asked == "native" and choice.EXTENSION is None:
        pytest.skip("the native codec is not built (a C compiler and Python's headers build it)")
    program = "from kohort.wire import codec; print(codec._in_use.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "KOHORT_CODEC": asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"kohort.wire.{asked}_codec\n"


def test_the_variable_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    chapter = page.partition("\n## The codec\n")[2].partition("\n## ")[0]
    for value in (choice.PYTHON, choice.NATIVE):
        assert f"`{choice.VARIABLE}={value}`" in chapter


def test_both_sides_have_the_same_revision():
    """Or an extension would be left aside as one of older sources, just after it was built."""
    header = (Path(choice.__file__).parent / "codec.h").read_text(encoding="utf-8")
    assert f"enum {{ REVISION = {choice.REVISION} }};" in header
