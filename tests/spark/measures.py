# SPDX-License-Identifier: Apache-2.0
"""Gold of a test's own."""

from kohort.pipeline.format import catalog
from kohort.spark.tables import compute


def compute_only(monkeypatch, measures):
    """Nothing but these measures is computed, and no other table of gold is known."""
    monkeypatch.setattr(compute, "MEASURES", tuple(measures))
    monkeypatch.setattr(catalog, "GOLD", tuple(one.table for one in measures))
