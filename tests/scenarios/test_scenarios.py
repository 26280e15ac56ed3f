# SPDX-License-Identifier: Apache-2.0
"""Every transcript says what really happens. `pytest --rewrite tests/scenarios` makes it so."""

from pathlib import Path

import pytest
from tests.scenarios.transcript import replayed

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(transcript: Path, request: pytest.FixtureRequest) -> None:
    text = transcript.read_text(encoding="utf-8")
    happened = replayed(text)
    if request.config.getoption("--rewrite"):
        transcript.write_text(happened, encoding="utf-8")
        return
    assert happened == text, f"{transcript.name} tells another story; see --rewrite"


PASTED = """# Seed 7
topic orders partitions=1
heartbeat a epoch=0 subscribe=orders
wait 755ms
# what no word stands for
heartbeat a epoch=2
describe
"""


def test_commands_without_their_outcomes_are_all_carried_out() -> None:
    """As the simulator tells them, one below the other."""
    happened = replayed(PASTED)
    lines = happened.splitlines()
    commands = [
        line
        for at, line in enumerate(lines)
        if line and line[0] not in "+->" and lines[at - 1 : at]
    ]
    assert commands == PASTED.splitlines()[1:]
    assert replayed(happened) == happened
    assert "> Stable epoch 2 target 2 by uniform" in lines


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("heartbeat a epoch=2 owns=orders:0", "no topic orders, expected a line `topic orders "),
        ("hartbeat a epoch=2", "no command is called hartbeat"),
    ],
)
def test_what_a_story_cannot_tell_is_named(line: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        replayed(line)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 10
