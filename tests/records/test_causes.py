"""The words for causes."""

from kohort.records.causes import Cause


def test_a_cause_is_written_as_its_text():
    assert f"{Cause.EXPIRY}" == "offset expiry"
