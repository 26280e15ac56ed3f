# SPDX-License-Identifier: Apache-2.0
"""Quotas, as a cluster answers that has some."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import ApiError, ClientQuotaEntity, ErrorCode
from kohort.wire.messages import alter_client_quotas as alteration
from kohort.wire.messages import describe_client_quotas as description

ALICE, EVERYBODY = ClientQuotaEntity({"user": "alice"}), ClientQuotaEntity({"user": None})


@asynchronous
async def test_a_filter_says_which_names_it_means():
    def answer(_asked):
        return description.DescribeClientQuotasResponse(
            error_message=None,
            entries=[
                description.EntryData(
                    entity=[description.EntityData(entity_type="user", entity_name=name)],
                    values=[
                        description.ValueData(key="request_percentage", value=2.5),
                        description.ValueData(key="consumer_byte_rate", value=1e6),
                    ],
                )
                for name in ("alice", None)
            ],
        )

    async with (
        ScriptedCluster(1, {description.DescribeClientQuotasRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        found = await admin.describe_client_quotas()
        await admin.describe_client_quotas({"user": "alice", "client-id": ...}, strict=True)
        await admin.describe_client_quotas({"ip": None})
    assert list(found) == [EVERYBODY, ALICE]
    quotas = [("consumer_byte_rate", 1e6), ("request_percentage", 2.5)]
    assert list(found[ALICE].items()) == quotas
    sent = [
        (
            [(each.entity_type, each.match_type, each.match) for each in asked.request.components],
            asked.request.strict,
        )
        for asked in scripted.sent("DescribeClientQuotas")
    ]
    assert sent == [
        ([], False),
        ([("user", 0, "alice"), ("client-id", 2, None)], True),
        ([("ip", 1, None)], False),
    ]


@asynchronous
async def test_each_entity_has_its_own_outcome():
    def answer(asked):
        return alteration.AlterClientQuotasResponse(
            entries=[
                alteration.AlteredEntryData(
                    error_code=0 if entry.entity[0].entity_name else ErrorCode.INVALID_REQUEST,
                    error_message=None,
                    entity=entry.entity,
                )
                for entry in asked.request.entries
            ]
        )

    async with (
        ScriptedCluster(1, {alteration.AlterClientQuotasRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        outcomes = await admin.alter_client_quotas(
            {ALICE: {"producer_byte_rate": 10, "consumer_byte_rate": None}, EVERYBODY: {}},
            validate_only=True,
        )
    assert outcomes[ALICE] is None
    assert outcomes.failed[EVERYBODY].code is ErrorCode.INVALID_REQUEST
    (request,) = [asked.request for asked in scripted.sent("AlterClientQuotas")]
    assert request.validate_only
    assert [(op.key, op.value, op.remove) for op in request.entries[0].ops] == [
        ("producer_byte_rate", 10.0, False),
        ("consumer_byte_rate", 0.0, True),
    ]


@asynchronous
async def test_who_may_not_look_at_quotas_is_named():
    def answer(_asked):
        return description.DescribeClientQuotasResponse(
            error_code=31, error_message=None, entries=None
        )

    async with (
        ScriptedCluster(1, {description.DescribeClientQuotasRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        with pytest.raises(ApiError, match="ANONYMOUS is not authorized for DescribeConfigs on"):
            await admin.describe_client_quotas()


@asynchronous
async def test_what_makes_no_sense_is_refused_before_anything_is_asked():
    async with ScriptedCluster(1) as scripted, scripted.admin() as admin:
        for wrong, error, text in (
            ({"alice": {}}, TypeError, "changes has 'alice', expected a ClientQuotaEntity"),
            ({ALICE: {"a": "1"}}, TypeError, "a of ClientQuotaEntity.* is '1', expected a number"),
            ({ALICE: {"a": True}}, TypeError, "is True, expected a number or None"),
            ({ALICE: 3}, TypeError, "the quotas of ClientQuotaEntity.* is 3, expected a mapping"),
            ({ClientQuotaEntity({"user": 3}): {}}, TypeError, "user in .* is 3, expected a text"),
        ):
            with pytest.raises(error, match=text):
                await admin.alter_client_quotas(wrong)
        with pytest.raises(
            TypeError, match=r"user in wanted is 3, expected a text, None or \.\.\."
        ):
            await admin.describe_client_quotas({"user": 3})
    assert scripted.asked == []
