# SPDX-License-Identifier: Apache-2.0
"""Names of a package that are imported at their first use: a program waits for what it uses alone.

The package imports them a second time where only type checkers look, and lists those of them that
are public in `__all__`.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(
    package: str, homes: Mapping[str, str], *, others: str | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module. `homes` are modules with the names that each has,
    with spaces between them. The module `others` has all other names, as far as they are in
    `__all__` where there is one.
    """
    module_of = {name: module for module, names in homes.items() for name in names.split()}
    known = vars(sys.modules[package])
    public = known.get("__all__")

    def find(name: str) -> object:
        module = module_of.get(name)
        if module is None and (public is None or name in public) and not name.startswith("_"):
            module = others
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(module), name)
        known[name] = value  # from now on it is found without this function
        return value

    return find, lambda: sorted({*known, *module_of, *(public or ())})
