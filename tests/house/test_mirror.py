"""A module is tested by the module of its own name: src/kohort/x/y.py by tests/x/test_y.py."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kohort"
TESTS = ROOT / "tests"

FOLDERS = {  # as a whole, and why
    "spark": "Spark is slow to start: a test there is of what a run promises, not of one module",
    "wire/messages": "each is a table, held against upstream's by wire/test_conformance.py",
}
ELSEWHERE = {  # a module without one of its own, and the one that tests it; this list only shrinks
    "cli/arguments.py": "cli/test_main.py",
    "cli/command.py": "cli/test_main.py",
    "cli/consume.py": "cli/test_data.py",
    "cli/produce.py": "cli/test_data.py",
    "cli/show.py": "cli/test_pipeline.py",
    "client/admin/client.py": "client/test_public_names.py",
    "client/admin/rounds.py": "client/admin/test_offsets.py",
    "config/listeners.py": "cli/test_serve.py",
    "coordinator/classic/rebalance.py": "coordinator/classic/test_join.py",
    "coordinator/classic/records.py": "coordinator/classic/test_sync.py",
    "coordinator/classic/timers.py": "coordinator/classic/test_heartbeat.py",
    "coordinator/classic_protocol.py": "coordinator/classic/test_join.py",
    "coordinator/consumer/member.py": "coordinator/consumer/test_group.py",
    "coordinator/consumer/quiet.py": "coordinator/consumer/test_heartbeat.py",
    "coordinator/consumer/records.py": "coordinator/consumer/test_replay.py",
    "coordinator/consumer/target.py": "coordinator/consumer/test_planning.py",
    "coordinator/consumer/timers.py": "coordinator/consumer/test_fencing.py",
    "coordinator/effects.py": "runtime/test_driver.py",
    "coordinator/offsets/records.py": "coordinator/offsets/test_commit.py",
    "coordinator/settings.py": "coordinator/consumer/test_group.py",
    "coordinator/state.py": "coordinator/test_shard.py",
    "coordinator/topics.py": "coordinator/consumer/test_metadata.py",
    "errors.py": "client/test_cluster.py",
    "records/schemas.py": "records/test_golden_records.py",
    "runtime/loader.py": "runtime/test_driver.py",
    "runtime/machine.py": "runtime/test_driver.py",
    "runtime/observers.py": "runtime/test_driver.py",
    "runtime/turns.py": "runtime/test_driver.py",
    "server/apis/judging.py": "server/apis/test_create_topics.py",
    "server/apis/leaders.py": "server/apis/test_fetch.py",
    "server/apis/named_topics.py": "server/apis/test_offset_commit.py",
    "server/apis/resources.py": "server/apis/test_describe_configs.py",
    "server/budget.py": "server/test_intake.py",
    "server/disk_work.py": "server/test_housekeeping.py",
    "server/logs.py": "server/test_housekeeping.py",
    "server/node.py": "server/apis/test_groups.py",
    "server/routes.py": "house/test_docs.py",
    "server/sockets.py": "serve/test_limits.py",
    "storage/log.py": "storage/test_memory.py",
    "storage/segment.py": "storage/test_segments.py",
    "wire/apis.py": "wire/test_conformance.py",
    "wire/batch/checking.py": "server/test_incoming.py",
    "wire/codegen/decoding.py": "wire/test_codec.py",
    "wire/codegen/encoding.py": "wire/test_codec.py",
    "wire/codegen/source.py": "wire/test_codec.py",
    "wire/codegen/strided.py": "wire/test_codec.py",
    "wire/schema.py": "wire/test_conformance.py",
}
LENGTH = 47


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


@pytest.mark.parametrize("module", list(modules()))
def test_a_module_has_a_test_module_of_its_name(module):
    expected = mirror_of(module)
    assert expected.exists() or module in ELSEWHERE, f"write {expected.relative_to(ROOT)}"


@pytest.mark.parametrize("module", ELSEWHERE)
def test_an_exception_is_needed(module):
    assert module in set(modules()), f"{module} is gone: take it out of the list"
    assert not mirror_of(module).exists(), f"{module} needs no exception any more"
    assert (TESTS / ELSEWHERE[module]).exists(), f"{ELSEWHERE[module]} is gone"


def test_the_list_shrinks():
    """A new module is no exception. Lower LENGTH when one is taken out."""
    assert len(ELSEWHERE) == LENGTH


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_that_is_left_out_is_there(folder):
    assert (SOURCE / folder).is_dir()
