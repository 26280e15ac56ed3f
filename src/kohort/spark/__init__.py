"""The pipeline over the group log: sources of raw rows, typed tables, and what they tell.

It needs the extra `kohort[spark]` and Java 17 or newer.
"""
