# SPDX-License-Identifier: Apache-2.0
"""Pieces of code of the documentation, for tests that run them."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str, chapter: str, language: str) -> list[str]:
    """Every piece of code of that language in a chapter of a page."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {chapter}\n")[2]
    inside = text.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", inside, re.MULTILINE | re.DOTALL)
