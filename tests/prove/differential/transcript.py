# SPDX-License-Identifier: Apache-2.0
"""A sequence as a story: who asked what, and what each broker answered."""

from __future__ import annotations

from typing import Any

from tests.prove.differential.comparing import alike
from tests.prove.differential.player import Outcome, StepOutcome
from tests.prove.differential.steps import RESTART, Memory, Ref, label_of

LONGEST = 700


def transcript_lines(outcome: Outcome, memories: list[Memory], title: str) -> str:
    """One line for each step, and the difference at the end."""
    lines = [title]
    for index, one in enumerate(outcome.transcript_lines):
        if one.step is RESTART:
            lines.append(f"{index:3}. both brokers are killed and started again")
            continue
        if not one.step.is_request:
            lines.append(f"{index:3}. {one.step.api}")
            continue
        lines.append(_asked(index, one, memories))
        if index == outcome.at:
            lines += [f"       {difference}" for difference in outcome.differences]
            for name, answer, memory in zip(
                ("Kafka ", "Kohort"), one.answers, memories, strict=True
            ):
                lines.append(f"       {name}: {_shown(answer, one, memory)}")
    return "\n".join(lines)


def _asked(index: int, one: StepOutcome, memories: list[Memory]) -> str:
    fields = _plain(one.requests[0], memories[0]) if one.requests else _plain(one.step.fields, None)
    queued = ", queued" if one.step.queued else ""
    text = f"{index:3}. {one.step.actor}: {one.step.api} v{one.step.version}{queued} {fields}"
    return f"{_cut(text)} -> {_outcome(one)}"


def _outcome(one: StepOutcome) -> str:
    answer = one.answers[0]
    if answer is None:
        return "waits" if one.step.answered else "(no answer is due)"
    if isinstance(answer, str):
        return answer
    codes = sorted(set(_codes(answer)))
    return f"error {codes}" if codes and codes != [0] else "ok"


def _codes(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [value["error_code"]] if "error_code" in value else []
        return own + [code for one in value.values() for code in _codes(one)]
    return [code for one in value for code in _codes(one)] if isinstance(value, list) else []


def _shown(answer: Any, one: StepOutcome, memory: Memory) -> str:
    if answer is None or isinstance(answer, str):
        return str(answer)
    return _cut(str(alike(one.step, answer, memory)), 2000)


def _plain(value: Any, memory: Memory | None) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one, memory) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one, memory) for one in value]
    if isinstance(value, Ref):
        return repr(value)
    if memory is not None and isinstance(value, str | bytes) and value in memory.labels:
        return label_of(memory, value)
    if memory is not None and isinstance(value, str):
        return _cut(value.removeprefix(memory.prefix), 60)
    return _cut(value.hex(), 80) if isinstance(value, bytes) else value


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."
