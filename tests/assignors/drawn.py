# SPDX-License-Identifier: Apache-2.0
"""Groups for assignors, drawn by chance."""

from hypothesis import strategies as st

from kohort.assignors import Subscription

TOPICS = [
    bytes([high]) + bytes(14) + bytes([low]) for high, low in [(0, 1), (0, 2), (1, 0), (255, 7)]
]

sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)

names = st.lists(
    st.one_of(st.sampled_from("ABCDEFGH"), st.text(max_size=3)),
    min_size=1,
    max_size=6,
    unique=True,
)


@st.composite
def groups(draw, *, equal=None):
    """Members with a previous target that nobody shares, and the sizes of the topics."""
    partitions = draw(sizes)
    topics = sorted(partitions)
    everything = tuple(draw(st.permutations(topics)))
    same = draw(st.booleans()) if equal is None else equal
    members = {}
    for name in draw(names):
        read = everything if same else tuple(draw(st.lists(st.sampled_from(topics), unique=True)))
        members[name] = Subscription(read, {}, draw(st.none() | st.just("i" + name)))
    ids = list(members)
    for topic in topics:
        # Perhaps the topic has grown, and perhaps a member has left.
        for partition in range(draw(st.integers(0, partitions[topic]))):
            owner = draw(st.sampled_from([*ids, None]))
            if owner is not None:
                previous = members[owner].previous
                previous[topic] = (*previous.get(topic, ()), partition)
    return members, partitions
