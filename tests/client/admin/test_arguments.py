# SPDX-License-Identifier: Apache-2.0
"""What the admin client is given, and what it says of it, before it asks anybody."""

import pytest
from tests.client.scripted import asynchronous

from kohort.client.admin import (
    AdminClient,
    CommittedOffset,
    NewTopic,
    OffsetReset,
)

SESSION = "consumer.session.timeout.ms"


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda it: it.create_topics("foo"), "new_topics is 'foo', expected a list of NewTopic"),
        (
            lambda it: it.create_topics(["foo"]),
            "new_topics has 'foo', expected NewTopic, as NewTopic('orders', 3)",
        ),
        (lambda it: it.create_topics({"foo": 3}), "new_topics is {'foo': 3}, expected a list"),
        (lambda it: it.create_topics(NewTopic("foo")), "new_topics is NewTopic(name='foo'"),
        (lambda it: it.create_topics(None), "new_topics is None, expected a list of NewTopic"),
        (lambda it: it.create_topics([NewTopic(3)]), "the name of a new topic is 3, expected a "),
        (
            lambda it: it.create_topics([NewTopic("x", "3")]),
            "partitions of topic x is '3', expected a number",
        ),
        (
            lambda it: it.create_topics([NewTopic("x", 3, True)]),
            "replication_factor of topic x is True, expected a number",
        ),
        (
            lambda it: it.create_topics([NewTopic("x", 3, 1, {"retention.ms": 3})]),
            "retention.ms in configs of topic x is 3, expected a text",
        ),
        (
            lambda it: it.create_topics([NewTopic("x", 3, 1, ["a=b"])]),
            "configs of topic x is ['a=b'], expected a mapping of names to texts",
        ),
        (lambda it: it.create_partitions({"x": "3"}), "the count of topic x is '3', expected a n"),
        (lambda it: it.create_partitions({3: 3}), "counts has 3, expected texts"),
        (lambda it: it.delete_topics(3), "names is 3, expected a text or a list of texts"),
        (lambda it: it.delete_topics([3]), "names has 3, expected texts"),
        (lambda it: it.delete_topics(b"foo"), "names is b'foo', expected a text or a list"),
        (lambda it: it.describe_topics([None]), "names has None, expected texts"),
        (lambda it: it.describe_groups(None), "group_ids is None, expected a text or a list"),
        (lambda it: it.delete_groups([3]), "group_ids has 3, expected texts"),
        (lambda it: it.describe_group_configs([3]), "group_ids has 3, expected texts"),
        (lambda it: it.list_groups(states=[3]), "states has 3, expected texts"),
        (lambda it: it.list_groups(types=3), "types is 3, expected a text or a list of texts"),
        (lambda it: it.list_group_offsets([3]), "wanted has 3, expected texts"),
        (lambda it: it.alter_group_offsets(3, {}), "group_id is 3, expected a text"),
        (
            lambda it: it.alter_group_offsets("g", [("t", 0)]),
            "new_offsets is [('t', 0)], expected a mapping",
        ),
        (
            lambda it: it.alter_group_offsets("g", {"t": 5}),
            "new_offsets has 't', expected (topic, index), as ('orders', 0)",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("t", 0): "5"}),
            "the offset of t:0 in new_offsets is '5', expected a number or a CommittedOffset",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("t", 0): True}),
            "the offset of t:0 in new_offsets is True, expected a number or a CommittedOffset",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("t", 0): CommittedOffset("5")}),
            "the offset of t:0 in new_offsets is '5', expected a number",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("t", 0): CommittedOffset(5, None, 5)}),
            "the metadata beside the offset of t:0 in new_offsets is 5, expected a text",
        ),
        (
            lambda it: it.plan_offset_reset("g", "earliest"),
            "to is 'earliest', expected an OffsetReset, as OffsetReset.earliest()",
        ),
        (
            lambda it: it.plan_offset_reset("g", OffsetReset.latest(), 3),
            "partitions is 3, expected a list of topics or of (topic, index)",
        ),
        (lambda it: it.delete_group_offsets("g", 3), "partitions is 3, expected a list of topics"),
        (
            lambda it: it.delete_group_offsets("g", ("t", 0)),
            "partitions has 0, expected (topic, index), as ('orders', 0)",
        ),
        (
            lambda it: it.list_group_offsets({"g": "t"}),
            "partitions of group g is 't', expected a list of (topic, index)",
        ),
        (
            lambda it: it.list_group_offsets({"g": ("t", 0)}),
            "partitions of group g has 't', expected (topic, index), as ('orders', 0)",
        ),
        (lambda it: it.list_group_offsets({3: None}), "wanted has 3, expected texts"),
        (lambda it: it.list_offsets([("t", 0)]), "partitions is [('t', 0)], expected a mapping"),
        (
            lambda it: it.list_offsets({"t": "latest"}),
            "partitions has 't', expected (topic, index), as ('orders', 0)",
        ),
        (
            lambda it: it.list_offsets({("t", "0"): "latest"}),
            "partitions has ('t', '0'), expected (topic, index)",
        ),
        (lambda it: it.end_offsets("t"), "partitions is 't', expected a list of (topic, index)"),
        (lambda it: it.end_offsets(("t", 0)), "partitions has 't', expected (topic, index)"),
        (lambda it: it.alter_group_configs(["g"]), "changes is ['g'], expected a mapping"),
        (
            lambda it: it.alter_group_configs({"g": "x=1"}),
            "changes of group g is 'x=1', expected a mapping of names to texts",
        ),
        (
            lambda it: it.alter_group_configs({"g": {SESSION: 60000}}),
            f"{SESSION} in changes of group g is 60000, expected a text or None",
        ),
        (lambda it: it.alter_group_configs({"g": {3: "x"}}), "changes of group g has the name 3"),
        (lambda it: it.alter_group_configs({3: {}}), "changes has the group 3, expected a text"),
    ],
)
@asynchronous
async def test_what_is_of_another_kind_is_named_with_what_was_expected(call, why):
    """Nobody listens there: it is told before anything is asked."""
    async with AdminClient("127.0.0.1:1") as admin:
        with pytest.raises(TypeError) as raised:
            await call(admin)
    assert str(raised.value).startswith(why)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            lambda it: it.delete_groups(["a", "x" * 40_000]),
            "group_ids has a text of 40000 bytes, expected 32767 at most",
        ),
        (
            lambda it: it.describe_groups("\ud800"),
            "group_ids has '\\ud800', expected text in UTF-8",
        ),
        (lambda it: it.alter_group_configs({"\ud800": {}}), "changes has '\\ud800', expected text"),
        (
            lambda it: it.alter_group_configs({"g": {SESSION: "\ud800"}}),
            f"{SESSION} in changes of group g has '\\ud800', expected text in UTF-8",
        ),
        (
            lambda it: it.create_topics([NewTopic("x", 2**31)]),
            "partitions of topic x is 2147483648, expected 2147483647 at most",
        ),
        (
            lambda it: it.create_topics([NewTopic("x", 1, 2**15)]),
            "replication_factor of topic x is 32768, expected 32767 at most",
        ),
        (
            lambda it: it.create_topics([NewTopic("x", 1), NewTopic("y"), NewTopic("x", 3)]),
            "new_topics has topic x twice, expected each once",
        ),
        (
            lambda it: it.create_partitions({"x": 2**40}),
            "the count of topic x is 1099511627776, expected 2147483647 at most",
        ),
        (
            lambda it: it.end_offsets([("x", 2**31)]),
            "the index of a partition of topic x in partitions is 2147483648, expected",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("x", 0): -1}),
            "the offset of x:0 in new_offsets is -1, expected 0 at least",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("x", 0): 2**63}),
            "the offset of x:0 in new_offsets is 9223372036854775808, expected 92",
        ),
        (
            lambda it: it.alter_group_offsets("g", {("x", 0): CommittedOffset(1, -1)}),
            "the leader epoch beside the offset of x:0 in new_offsets is -1, expected 0 at least",
        ),
        (lambda it: it.delete_group_offsets("g", "\ud800"), "partitions has '\\ud800', expected"),
        (
            lambda it: it.list_group_offsets({"g": [("\ud800", 0)]}),
            "partitions of group g has '\\u",
        ),
    ],
)
@asynchronous
async def test_what_cannot_be_sent_is_named_with_what_was_expected(call, why):
    """Nobody listens there: it is told before anything is asked."""
    async with AdminClient("127.0.0.1:1") as admin:
        with pytest.raises(ValueError) as raised:
            await call(admin)
    assert str(raised.value).startswith(why)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"bootstrap_servers": 3}, "bootstrap_servers is 3, expected a text or a list of texts"),
        ({"bootstrap_servers": ["h:1", 3]}, "bootstrap_servers has 3, expected texts"),
        ({"timeout": "3"}, "timeout is '3', expected a number of seconds"),
        ({"client_id": 3}, "client_id is 3, expected a text"),
    ],
)
def test_a_client_is_made_of_the_right_kinds(arguments, why):
    with pytest.raises(TypeError) as raised:
        AdminClient(**arguments)
    assert str(raised.value) == why
