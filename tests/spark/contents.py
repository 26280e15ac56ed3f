# SPDX-License-Identifier: Apache-2.0
"""All that a directory of tables says, fit for comparing one with another."""

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.schemas import RECORDS_TABLE, SILVER


def contents(directory):
    """Every row of every table, in an order of its own."""
    tables = Tables(directory)
    names = [RECORDS_TABLE.name, *(table.name for table in SILVER), *tables.manifest.gold]
    return {name: sorted(map(repr, tables.table(name).to_pylist())) for name in names}
