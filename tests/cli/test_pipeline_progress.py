# SPDX-License-Identifier: Apache-2.0
"""What a run of the pipeline is doing, on stderr."""

from kohort.cli import pipeline_progress


def test_progress_is_a_line_every_ten_seconds_in_a_pipe(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(pipeline_progress.time, "monotonic", lambda: now[0])
    shown = pipeline_progress.ProgressPrinter()
    for seconds in range(25):
        now[0] = 100.0 + seconds
        shown(f"at {seconds}")
    assert capsys.readouterr().err.splitlines() == ["at 2", "at 12", "at 22"]
