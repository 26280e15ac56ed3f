"""Which codec is used: KOHORT_CODEC says it, and one that is not here is refused in one line."""

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
