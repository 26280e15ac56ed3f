# SPDX-License-Identifier: Apache-2.0
"""The main job, step by step: real consumer groups, a kill of the broker, and a restart.

Run it with `make demo`. It starts everything in processes of its own, on the loopback interface and
in a temporary directory. It checks what it says, ends by itself, and leaves only the tables and the
report of its last step, in `kohort-demo` where it was started. The exit code is 0 when every check
held.
"""

import atexit
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kohort.testing import Broker

PARTS = Path(__file__).with_name("demo_parts.py")
TOPIC = "orders"
PARTITIONS = 6
SETTINGS = {
    # Short times, so that the death of a member is noticed within seconds.
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "500",
}
OUT = Path("kohort-demo")
BOLD, DIM, PLAIN = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


class Failed(Exception):  # noqa: N818  (the demo ends with it)
    """A check of the demo did not hold."""


def tell(text: str) -> None:
    print(f"\n{BOLD}{text}{PLAIN}", flush=True)


def note(text: str) -> None:
    print(f"{DIM}{text}{PLAIN}", flush=True)


def check(holds: object, what: str) -> None:
    if not holds:
        raise Failed(what)
    print(f"  ok: {what}", flush=True)


class Part:
    """A producer or a consumer: a process of demo_parts.py and its journal."""

    def __init__(self, stage: "Stage", *arguments: str) -> None:
        self.name = arguments[-1]
        self.journal = stage.directory / f"{self.name}.jsonl"
        self.journal.touch()
        kind, *rest = arguments[:-1]
        words = [kind, stage.broker.bootstrap, TOPIC, *rest]
        if kind != "produce":
            words.append(self.name)
        self.process = subprocess.Popen(
            [sys.executable, str(PARTS), *words, str(self.journal)],
            stderr=stage.errors,
        )
        stage.parts.append(self)

    def events(self) -> Iterator[dict[str, Any]]:
        for line in self.journal.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)

    def leave(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


class Stage:
    """The broker and everybody on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.errors = (directory / "clients.log").open("w", encoding="utf-8")
        self.parts: list[Part] = []
        self.broker = Broker(SETTINGS, process=True)
        atexit.register(self.clear)

    def clear(self) -> None:
        """End every process that still runs, by its id."""
        for part in self.parts:
            if part.process.poll() is None:
                part.kill()
        self.broker.close()
        self.errors.close()

    def words_of_clients(self) -> str:
        """What producers and consumers have written to stderr, and who of them has ended."""
        ended = [part.name for part in self.parts if part.process.poll() is not None]
        return f"{Path(self.errors.name).read_text(encoding='utf-8')}ended: {', '.join(ended)}"

    def kohort(self, *words: str) -> str:
        """Run the command line, as a user would."""
        return run(*words, "--bootstrap-server", self.broker.bootstrap)

    def show(self, *words: str) -> None:
        note(f"$ kohort {' '.join(words)}")
        print(self.kohort(*words).rstrip())

    def described(self, group: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.kohort("groups", "describe", group, "--format", "json")
        )["groups"][0]
        return found

    def settled(
        self, group: str, members: int, seconds: float = 120, shares: list[int] | None = None
    ) -> dict[str, Any]:
        """Wait until the group is stable, with this many members that own every partition; with
        `shares`, so many of them each.
        """
        found: dict[str, Any] = {}

        def done() -> bool:
            try:
                found.update(self.described(group))
            except Failed:
                return False
            has = [(one["assignment"] or {}).get(TOPIC, []) for one in found["members"]]
            complete = sorted(itertools.chain(*has)) == list(range(PARTITIONS))
            shared = shares is None or sorted(map(len, has)) == shares
            return found["state"] == "Stable" and len(has) == members and complete and shared

        wait_for(done, f"group {group} is stable with {members} members", seconds)
        return found


def run(*words: str, seconds: float = 120) -> str:
    """What a command of Kohort prints."""
    command = [sys.executable, "-m", "kohort", *words]
    # Nothing of ours works on once this has ended: no archive of Spark's classes is made.
    ours = {**os.environ, "KOHORT_CLASS_ARCHIVE": "off"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, env=ours
    )
    if done.returncode:
        raise Failed(f"kohort {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def wait_for(holds: Callable[[], bool], what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds:.0f} seconds: {what}")
        time.sleep(0.2)


def story(stage: Stage) -> None:
    began = time.monotonic()
    tell("1. A broker")
    stage.broker.start()
    note(f"up after {time.monotonic() - began:.2f} s on {stage.broker.bootstrap}, its log is in")
    note(f"{stage.broker.data_dir}, in Kafka's own format")
    stage.show("topics", "create", TOPIC, "--partitions", str(PARTITIONS))
    producer = Part(stage, "produce", "producer")
    note("a producer now writes about 200 numbered records a second")

    tell("2. Three confluent-kafka consumers (group.protocol=consumer) join one after the other")
    consumers = {}
    for count, name in enumerate(("anna", "ben", "cleo"), 1):
        consumers[name] = Part(stage, "consumer", "billing", name)
        group = stage.settled("billing", count)
        sizes = sorted(len(one["assignment"][TOPIC]) for one in group["members"])
        check(sizes[-1] - sizes[0] <= 1, f"{name} has joined, the partitions are shared {sizes}")
    stage.show("groups", "describe", "billing")

    tell("3. ben is killed: nobody says goodbye for him, his session has to run out")
    epoch = stage.described("billing")["group_epoch"]
    consumers["ben"].kill()
    group = stage.settled("billing", 2)
    check(group["group_epoch"] > epoch, "the group noticed and went on in a new epoch")
    stage.show("groups", "describe", "billing")

    tell("4. cleo leaves in good order")
    consumers["cleo"].leave()
    stage.settled("billing", 1, 5)
    stage.show("groups", "describe", "billing")

    tell("5. A second group, under the classic protocol, by kafka-python")
    auditor = Part(stage, "classic", "audit", "dora")
    stage.settled("audit", 1)
    stage.show("groups", "describe", "audit")
    stage.show("groups", "list")

    tell("6. Members of different strength share by an assignor of their own (kohort.Consumer)")
    weighed = [Part(stage, "weighed", "shipping", f"weight-{weight}") for weight in (1, 2, 3)]
    group = stage.settled("shipping", len(weighed), shares=[1, 2, 3])
    shares = {one["client_id"]: len(one["assignment"][TOPIC]) for one in group["members"]}
    check(shares == {"weight-1": 1, "weight-2": 2, "weight-3": 3}, "each has what it can do")
    stage.show("groups", "describe", "shipping")
    for one in weighed:
        one.leave()

    tell("7. kill -9 for the broker, and a start on the same directory")
    before = {one["partition"]: one["committed_offset"] for one in offsets(stage, "billing")}
    stage.broker.kill()
    time.sleep(0.5)
    began = time.monotonic()
    stage.broker.restart()
    note(f"up again after {time.monotonic() - began:.2f} s")
    after = {one["partition"]: one["committed_offset"] for one in offsets(stage, "billing")}
    kept = all(after.get(index, -1) >= offset for index, offset in before.items())
    check(kept, "every offset that was shown before the kill is still there")
    stage.settled("billing", 1)
    stage.settled("audit", 1)
    check(progress(stage, before), "the consumers go on by themselves")
    stage.show("groups", "describe", "--all")

    tell("8. The end: the producer stops, everything is read, the members leave")
    producer.leave()
    acked = {event["acked"] for event in producer.events() if "acked" in event}
    check(not any("failed" in event for event in producer.events()), f"{len(acked)} records stored")
    billing, audit = list(consumers.values()), [auditor]
    for name, members in (("billing", billing), ("audit", audit)):
        wait_for(lambda members=members: acked <= numbers(members), f"{name} reads everything")
        check(acked <= numbers(members), f"{name} has read every record: nothing was lost")
    consumers["anna"].leave()
    auditor.leave()
    for name, members in (("billing", billing), ("audit", audit)):
        check_no_repeats(name, members)
    stage.show("groups", "list", "--state", "empty")
    stage.show("groups", "delete", "audit", "shipping", "--yes")
    stage.show("groups", "list")
    left = json.loads(stage.kohort("groups", "list", "--format", "json"))["groups"]
    check([one["group_id"] for one in left] == ["billing"], "two are deleted, billing is kept")


def history(stage: Stage) -> None:
    """Run the pipeline over the log that all of this has left."""
    tell("9. What happened? Spark reads it out of the broker's log")
    shutil.rmtree(OUT, ignore_errors=True)
    words = ("pipeline", "run", "--source", f"log:{stage.broker.data_dir}", "--out", str(OUT))
    words += ("--session-timeout", "6s")  # as in SETTINGS; the log does not say
    note(f"$ kohort {' '.join(words)}")
    print(run(*words, seconds=600).rstrip())
    words = ("pipeline", "show", "rebalances", "--out", str(OUT))
    note(f"$ kohort {' '.join(words)}")
    print(run(*words).rstrip())
    found = json.loads(run(*words, "--group", "billing", "--format", "json"))["rows"]
    causes = [one["trigger"] for one in found]
    check(causes.count("join") == 3, "three members joined billing, one after the other")
    gone = {who["client_id"]: one for one in found for who in one["gone"]}
    check(gone["cleo"]["trigger"] == "leave", "cleo left: she committed a moment before")
    check(
        gone["ben"]["trigger"] == "session timeout",
        "ben's session was over: the broker has written so beside the record",
    )
    note(f"All of it in pictures: {(OUT / 'report.html').absolute()}")


def offsets(stage: Stage, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def there() -> bool:
        try:
            found[:] = stage.described(group)["offsets"]
        except Failed:
            return False
        return True

    wait_for(there, f"group {group} can be described")
    return [one for one in found if one["committed_offset"] is not None]


def progress(stage: Stage, before: dict[int, int]) -> bool:
    """Whether the group has committed more than before."""
    wait_for(
        lambda: all(
            one["committed_offset"] > before.get(one["partition"], -1)
            for one in offsets(stage, "billing")
        ),
        "billing commits new offsets after the restart",
    )
    return True


def numbers(members: Iterable[Part]) -> set[int]:
    return {event["read"][2] for member in members for event in member.events() if "read" in event}


def check_no_repeats(group: str, members: Iterable[Part]) -> None:
    """A record may be read twice only when it was not committed before the second time."""
    events = sorted(
        (event for member in members for event in member.events()), key=lambda event: event["at"]
    )
    committed: defaultdict[int, int] = defaultdict(int)
    seen: set[tuple[int, int]] = set()
    again = 0
    for event in events:
        if "read" in event:
            partition, offset, _ = event["read"]
            if offset < committed[partition]:
                raise Failed(f"{group} has read a committed record again: {partition}/{offset}")
            again += (partition, offset) in seen
            seen.add((partition, offset))
        elif "committed" in event:
            partition, offset = event["committed"]
            committed[partition] = max(committed[partition], offset)
    check(True, f"{group} has read {again} records twice, none of which was committed at the kill")


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kohort-demo-") as directory:
        stage = Stage(Path(directory))
        try:
            story(stage)
            history(stage)
        except KeyboardInterrupt:
            print("\nThe demo was stopped.", file=sys.stderr)
            return 130
        except (Failed, subprocess.SubprocessError) as error:
            print(f"\n{BOLD}The demo has failed:{PLAIN} {error}", file=sys.stderr)
            print(stage.broker.log()[-3000:], file=sys.stderr)
            print(stage.words_of_clients()[-3000:], file=sys.stderr)
            return 1
        finally:
            stage.clear()
    tell(f"Every check held. The demo took {time.monotonic() - began:.0f} seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
