# SPDX-License-Identifier: Apache-2.0
"""Every story of a member says what really happens. `--rewrite` writes them anew."""

from pathlib import Path

import pytest
from tests.client.members.classic_transcript import ClassicMemberTranscript
from tests.client.members.consumer_transcript import ConsumerMemberTranscript
from tests.scenarios.transcript import replayed

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_story(story: Path, request: pytest.FixtureRequest) -> None:
    text = story.read_text(encoding="utf-8")
    teller = ClassicMemberTranscript() if "_classic_" in story.name else ConsumerMemberTranscript()
    happened = replayed(text, teller)
    if request.config.getoption("--rewrite"):
        story.write_text(happened, encoding="utf-8")
        return
    assert happened == text, f"{story.name} tells another story; see --rewrite"


def test_there_are_stories() -> None:
    assert len(STORIES) >= 8
