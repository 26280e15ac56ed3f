"""What `kohort --help` loads is this list: its time is a figure in benchmarks/startup.py.

A module that is not here is loaded by the command that needs it, when it runs.
"""

import subprocess
import sys

import pytest

OURS = {"kohort", "kohort.cli", "kohort.errors", "kohort.figures", "kohort.terms"}
STANDARD = {
    *("argparse", "gettext", "locale", "textwrap", "shutil"),  # argparse, and what it loads to help
    *("fnmatch", "bz2", "lzma", "zlib", "struct", "errno"),  # what shutil loads
    *("collections", "contextlib", "copyreg", "enum", "functools", "itertools", "keyword"),
    *("operator", "re", "reprlib", "types", "typing", "warnings", "importlib", "runpy", "math"),
    *("datetime", "ipaddress", "json", "ntpath", "pathlib", "urllib"),
    *("base64", "binascii"),  # topic ids as text
    "encodings",  # of terms: looked up at import, since no request may import one
    *("annotationlib", "ast", "compression", "dis", "glob", "inspect", "io", "linecache", "opcode"),
    *("copy", "dataclasses", "fcntl", "weakref"),
    *("grp", "pwd", "string", "token", "tokenize"),  # newer versions of Python
}


@pytest.mark.parametrize(
    "argv", [["--help"], [], ["serve", "--help"], ["groups", "describe", "--help"]], ids=" ".join
)
def test_help_loads_what_is_on_the_list(argv):
    program = (
        "import sys; before = set(sys.modules); from kohort.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "sys.stdout.write('\\n' + ' '.join(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "kohort.cli.main" in loaded
    ours = {one for one in loaded if one.partition(".")[0] == "kohort"}
    assert {one for one in ours - OURS if not one.startswith("kohort.cli.")} == set()
    if argv in ([], ["--help"]):
        modules = ("main", "connection", "command", "render")
        for_commands = {"kohort.figures", "kohort.terms"}
        assert ours == OURS - for_commands | {f"kohort.cli.{one}" for one in modules}
    others = {one.partition(".")[0] for one in loaded - ours}
    assert {one for one in others - STANDARD if not one.startswith("_")} == set()


def test_the_version_loads_the_metadata_besides():
    program = (
        "import sys; from kohort.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = ('asyncio', 'msgspec', 'rich', 'kohort.wire', 'kohort.client', 'kohort.config')\n"
        "sys.stdout.write(repr([one for one in heavy if one in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
