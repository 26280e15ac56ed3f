# SPDX-License-Identifier: Apache-2.0
"""A module is tested by the module of its own name: src/kohort/x/y.py by tests/x/test_y.py."""

import ast
from functools import cache
from pathlib import Path

from kohort.cli.main import WORDS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kohort"
TESTS = ROOT / "tests"

FOLDERS = {  # as a whole, and why
    "sim": "a world is tested by playing seeds in it, and what judges it by forged histories",
    "pipeline": "a test there is of a table, a store, a source or a page: modules are their parts",
    "spark": "a test there starts Spark and is of a table or a source: modules are parts of these",
    "drop_in": "a run of a tool goes through all its modules: what the real tools said, run by run",
    "wire/codegen": "one compiler: what it makes of each message is in wire/test_codec.py",
    "wire/messages": "each is a table, held against upstream's by wire/test_conformance.py",
}
ELSEWHERE = {  # a module without one of its own, and the one that tests it; this list only shrinks
    "cli/arguments.py": "cli/test_pipeline.py",
    "cli/command.py": "cli/test_main.py",
    "cli/show.py": "cli/test_pipeline.py",
    "client/admin/client.py": "client/test_public_names.py",
    "client/admin/request_rounds.py": "client/admin/test_offsets.py",
    "coordinator/classic/rebalance.py": "coordinator/classic/test_join.py",
    "coordinator/classic/records.py": "coordinator/classic/test_replay.py",
    "coordinator/classic/timers.py": "coordinator/classic/test_heartbeat.py",
    "coordinator/classic_protocol.py": "coordinator/classic/test_join.py",
    "coordinator/consumer/member.py": "coordinator/consumer/test_group.py",
    "coordinator/consumer/no_op_heartbeats.py": "coordinator/consumer/test_heartbeat.py",
    "coordinator/consumer/records.py": "coordinator/consumer/test_replay.py",
    "coordinator/consumer/target.py": "coordinator/consumer/test_planning.py",
    "coordinator/consumer/timers.py": "coordinator/consumer/test_fencing.py",
    "machines/effects.py": "runtime/test_driver.py",
    "coordinator/offsets/records.py": "coordinator/offsets/test_commit.py",
    "coordinator/settings.py": "coordinator/consumer/test_group.py",
    "coordinator/state.py": "coordinator/test_shard.py",
    "machines/topics.py": "coordinator/consumer/test_metadata.py",
    "errors.py": "client/network/test_cluster.py",
    "records/schemas.py": "records/test_golden_records.py",
    "runtime/loader.py": "runtime/test_driver.py",
    "machines/machine.py": "runtime/test_driver.py",
    "runtime/observers.py": "runtime/test_driver.py",
    "runtime/turns.py": "runtime/test_driver.py",
    "server/apis/topic_changes.py": "server/apis/test_create_topics.py",
    "server/apis/leaders.py": "server/apis/test_fetch.py",
    "server/apis/named_topics.py": "server/apis/test_offset_commit.py",
    "server/apis/resources.py": "server/apis/test_describe_configs.py",
    "server/requests/memory_pool.py": "server/network/test_request_buffer.py",
    "server/partitions/disk_work.py": "server/partitions/test_partition_table.py",
    "server/partitions/logs.py": "server/partitions/test_housekeeping.py",
    "server/node.py": "server/apis/test_groups.py",
    "storage/log.py": "storage/test_memory.py",
    "storage/segment.py": "storage/test_segments.py",
    "wire/apis.py": "wire/test_conformance.py",
    "wire/batch/checking.py": "server/partitions/test_batch_validation.py",
    "wire/schema.py": "wire/test_conformance.py",
}
LENGTH = 38


def name_of(path, root):
    """What an import statement calls a file; a package is called by its folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMED = {
    **{name_of(path, SOURCE.parent): path for path in SOURCE.rglob("*.py")},
    **{name_of(path, ROOT): path for path in TESTS.rglob("*.py")},
}


@cache
def imports_of(name):
    """The files of ours that one imports. A package stands for what it exports, and `kohort.cli`
    imports a command when it is asked for it.
    """
    found = set()
    for node in ast.walk(ast.parse(NAMED[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    if name == "kohort.cli.main":
        found.update(f"kohort.cli.{word}" for word in WORDS)
    found &= NAMED.keys() - {name}
    packages = {one for one in found if NAMED[one].stem == "__init__"}
    return found.union(*map(imports_of, packages))


def reaches(test, module):
    """Whether a module is imported by one that the test is of: by the name of the test, or by its
    imports and those of its helpers. The module may also be imported there itself.
    """
    path = Path(test)
    ours = [name_of(TESTS / path, ROOT)]
    own = name_of(SOURCE / path.parent / path.name.removeprefix("test_"), SOURCE.parent)
    seen = NAMED.keys() & {own}
    while ours:
        found = imports_of(ours.pop()) - seen
        seen |= found
        ours += [one for one in found if one.startswith("tests.")]
    wanted = name_of(SOURCE / module, SOURCE.parent)
    asked = {one for one in seen if not one.startswith("tests.")}
    return wanted in asked or any(wanted in imports_of(one) for one in asked)


def modules():
    """Those with anything to test: what an `__init__` exports is tested where it is made."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE)
        whole = any(module.is_relative_to(folder) for folder in FOLDERS)
        if module.stem not in ("__init__", "__main__") and not whole:
            yield module.as_posix()


def mirror_of(module):
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


def test_a_module_has_a_test_module_of_its_name():
    expected = {mirror_of(module) for module in modules() if module not in ELSEWHERE}
    missing = sorted(path.relative_to(ROOT).as_posix() for path in expected if not path.exists())
    assert missing == [], "write these"


def test_the_exceptions_are_needed():
    for module, test in ELSEWHERE.items():
        assert module in set(modules()), f"{module} is gone: take it out of the list"
        assert not mirror_of(module).exists(), f"{module} needs no exception any more"
        assert (TESTS / test).exists(), f"{test} is gone"
        assert reaches(test, module), f"{test} has nothing to do with it"


def test_a_test_that_has_nothing_to_do_with_a_module_is_found():
    assert reaches("server/network/test_request_buffer.py", "server/requests/memory_pool.py")
    assert not reaches("config/test_settings.py", "server/requests/memory_pool.py")


def test_the_list_shrinks():
    """A new module is no exception. Lower LENGTH when one is taken out."""
    assert len(ELSEWHERE) == LENGTH


def test_the_folders_that_are_left_out_are_there():
    assert [folder for folder in FOLDERS if not (SOURCE / folder).is_dir()] == []
