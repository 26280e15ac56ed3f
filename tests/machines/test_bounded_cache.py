# SPDX-License-Identifier: Apache-2.0
"""What is kept within a bound of bytes: who stays, who gives way, and what it counts."""

from random import Random

from kohort.machines.bounded_cache import BoundedCache


class Kept:
    def __init__(self, size=1, name=""):
        self.size = size
        self.name = name
        self.used = False
        self.current = True

    def holds(self):
        return self.current


def use(cache, key):
    """Take an entry, as its user does; whether there was one."""
    entry = cache.get(key)
    if entry is None or not entry.holds():
        return False
    entry.used = True
    return True


def test_whoever_was_not_used_for_a_round_gives_way():
    cache = BoundedCache(3)
    for key in "abc":
        cache.put(key, Kept())
    for key in "def":  # each takes the second chance of one, and stays outside
        cache.put(key, Kept())
    assert [key for key in "abcdef" if cache.get(key)] == ["a", "b", "c"]
    use(cache, "b")
    for key in "ghi":
        cache.put(key, Kept())
    assert cache.get("b") is not None
    assert sum(cache.get(key) is not None for key in "ghi") == 2
    assert len(cache) == cache.bytes == 3


def test_a_round_over_more_than_there_is_room_for_finds_most_of_what_is_kept():
    """By the plain rule, that the oldest goes first, each would have gone when its turn comes."""
    cache = BoundedCache(650)
    found = []
    for _ in range(6):
        hits = 0
        for key in range(1000):
            if use(cache, key):
                hits += 1
            else:
                cache.put(key, Kept())
        found.append(hits)
    assert min(found[2:]) > 500, found


def test_those_who_go_make_room_for_those_who_come():
    cache = BoundedCache(100)
    for _ in range(3):
        for key in range(100):
            use(cache, key) or cache.put(key, Kept())
    for _ in range(4):  # others, and the first hundred are silent
        hits = 0
        for key in range(100, 200):
            if use(cache, key):
                hits += 1
            else:
                cache.put(key, Kept())
    assert hits > 90


def test_what_does_not_hold_any_more_is_dropped_as_others_come():
    cache = BoundedCache(1 << 30)
    stay = [Kept() for _ in range(20)]
    for number, entry in enumerate(stay):
        cache.put(number, entry)
    for number in range(20, 2000):
        entry = Kept()
        cache.put(number, entry)
        entry.current = False
    assert len(cache) <= 3 * len(stay)
    assert all(cache.get(number) is entry for number, entry in enumerate(stay))


def test_a_newcomer_that_is_longer_than_the_whole_room_moves_nobody():
    cache = BoundedCache(10)
    cache.put("a", Kept(5))
    cache.put("b", Kept(11))
    assert (cache.get("b"), cache.bytes) == (None, 5)


def test_bytes_are_those_of_what_is_held():
    random = Random(1)
    cache = BoundedCache(500)
    entries = {}
    for _ in range(5000):
        key = random.randrange(200)
        entry = cache.get(key)
        if entry is not None and random.random() < 0.5:
            entry.used = True
        elif random.random() < 0.1:
            for known in random.sample(list(entries.values()), min(len(entries), 3)):
                known.current = False
        elif random.random() < 0.001:
            cache.clear()
        else:
            entries[key] = Kept(random.randrange(1, 60))
            cache.put(key, entries[key])
        held = [cache.get(key) for key in range(200)]
        held = [entry for entry in held if entry is not None]
        assert cache.bytes == sum(entry.size for entry in held) <= 500
        assert len(held) == len(cache) == len(cache._ring) == len(set(cache._ring))
