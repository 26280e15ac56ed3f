# SPDX-License-Identifier: Apache-2.0
"""Every source file says under which licence it is, for those who take a file alone."""

import pytest
from tests.repository import ROOT, committed

LINE = "SPDX-License-Identifier: Apache-2.0"
WRITTEN = {
    **dict.fromkeys(("py", "pyi"), f"# {LINE}"),
    **dict.fromkeys(("c", "h"), f"/* {LINE} */"),
    "java": f"// {LINE}",
}


def test_every_source_file_names_the_licence():
    found = [path for path in committed() if path.suffix[1:] in WRITTEN]
    if not found:
        pytest.skip("git, which says what belongs to the project, is not here")
    assert len(found) > 1900
    missing = [
        str(path)
        for path in found
        if WRITTEN[path.suffix[1:]] not in (ROOT / path).read_text(encoding="utf-8").split("\n")[:2]
    ]
    assert missing == []
