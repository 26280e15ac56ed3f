# SPDX-License-Identifier: Apache-2.0
"""The version of this package: pyproject.toml has it from here.

Clients tell it to each broker (KIP-511). To read it from the installed metadata imports parsers of
mail and of archives, which took longer than the request itself.
"""

VERSION = "0.2.0.dev0"
