# SPDX-License-Identifier: Apache-2.0
"""Whom a quota is for."""

from kohort import ClientQuotaEntity


def test_the_order_of_the_types_makes_no_difference():
    entity = ClientQuotaEntity({"user": "alice", "client-id": None})
    assert entity == ClientQuotaEntity({"client-id": None, "user": "alice"})
    assert hash(entity) == hash(ClientQuotaEntity({"client-id": None, "user": "alice"}))
    assert entity.names == {"client-id": None, "user": "alice"}
    assert repr(entity) == "ClientQuotaEntity({'client-id': None, 'user': 'alice'})"
    assert entity != ClientQuotaEntity({"client-id": "", "user": "alice"})


def test_the_default_is_sorted_first():
    users = [ClientQuotaEntity({"user": name}) for name in ("b", "a", None)]
    clients = ClientQuotaEntity({"client-id": "z"})
    assert sorted([*users, clients]) == [clients, users[2], users[1], users[0]]
