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


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 10
