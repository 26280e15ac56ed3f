# SPDX-License-Identifier: Apache-2.0
"""What `kohort --help` loads is this list: its time is a figure in benchmarks/startup.py.

A module that is not here is loaded by the command that needs it, when it runs.
"""

import subprocess
import sys

import pytest

from kohort.testing import Broker

OURS = {
    *("kohort", "kohort.cli", "kohort.errors", "kohort.figures", "kohort.lazy_names"),
    "kohort.terms",
}
STANDARD = {
    *("argparse", "gettext", "locale", "textwrap", "shutil"),  # argparse, and what it loads to help
    *("fnmatch", "bz2", "lzma", "zlib", "struct", "errno"),  # what shutil loads
    *("collections", "contextlib", "copyreg", "enum", "functools", "itertools", "keyword"),
    *("operator", "re", "reprlib", "types", "typing", "warnings", "importlib", "runpy", "math"),
    *("datetime", "ipaddress", "json", "ntpath", "pathlib", "urllib"),
    *("base64", "binascii"),  # topic ids as text
    "encodings",  # of terms: looked up at import, since no request may import one
    *("annotationlib", "ast", "compression", "dis", "glob", "inspect", "io", "linecache", "opcode"),
    *("copy", "dataclasses", "fcntl", "gc", "weakref"),
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


def test_the_version_loads_nothing_heavy():
    program = (
        "import sys; from kohort.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = ('importlib.metadata', 'asyncio', 'msgspec', 'rich', 'kohort.wire',"
        " 'kohort.client', 'kohort.config')\n"
        "sys.stdout.write(repr([one for one in heavy if one in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


LIST_GROUPS = (
    *("api_versions", "find_coordinator", "list_groups", "metadata"),
    *("sasl_authenticate", "sasl_handshake"),  # of every connection, which may have to log in
)


@pytest.mark.parametrize(
    "program", ["kohort.drop_in.groups --list", "kohort.cli.main groups list"], ids=str
)
def test_a_list_of_groups_loads_only_the_messages_that_it_sends(program):
    """Each message is a class that is made at import: those of all APIs took longer than to ask."""
    module, *words = program.split()
    source = (
        "import sys; from importlib import import_module\n"
        "code = import_module(sys.argv[1]).main(sys.argv[2:])\n"
        "sys.stdout.write(f'\\n{code} ' + ' '.join(sys.modules))"
    )
    with Broker(in_memory=True) as broker:
        argv = [module, *words, "--bootstrap-server", broker.bootstrap]
        done = subprocess.run(
            [sys.executable, "-c", source, *argv], capture_output=True, text=True, check=True
        )
    code, *loaded = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    messages = "kohort.wire.messages."
    sent = {name.removeprefix(messages) for name in loaded if name.startswith(messages)}
    assert sent <= {*LIST_GROUPS}
    assert "list_groups" in sent
    unneeded = (
        *("kohort.wire.apis", "kohort.server", "kohort.security.stores", "kohort.security.scram"),
        *("kohort.client.admin.group_views", "kohort.client.admin.topic_views", "kohort.spark"),
        *("kohort.client.admin.synchronous", "importlib.metadata", "tempfile", "difflib", "csv"),
        *("pathlib", "urllib.parse", "ipaddress"),
    )
    assert [name for name in unneeded if name in loaded] == []
