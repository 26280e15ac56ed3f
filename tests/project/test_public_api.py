"""`docs/public-api.txt` has what the code exports."""

from pathlib import Path

from tools.public_api import page

ROOT = Path(__file__).parents[2]
PAGE = "docs/public-api.txt"


def test_what_is_exported_now_is_in_the_page():
    """Run `make docs` when this fails, and name in CHANGELOG.md what breaks users."""
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page()
