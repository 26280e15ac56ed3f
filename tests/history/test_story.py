# SPDX-License-Identifier: Apache-2.0
"""Names of topics, as far as they are known."""

from kohort.history import Names


def test_an_id_is_known_if_there_is_one_of_that_name():
    names = Names({"1": "orders", "2": "orders", "3": "payments"})
    assert [names.name(one) for one in ("1", "2", "3", "4")] == [
        "orders",
        "orders",
        "payments",
        None,
    ]
    assert [names.id(one) for one in ("orders", "payments", "others")] == [None, "3", None]
