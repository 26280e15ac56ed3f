# SPDX-License-Identifier: Apache-2.0
"""What only type checkers see of a module."""

import ast
from pathlib import Path


def imported_for_types(module):
    """The names that type checkers alone import, with their modules."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = [one for one in tree.body if isinstance(one, ast.If)]
    return {alias.name: one.module for one in block.body for alias in one.names}
