# SPDX-License-Identifier: Apache-2.0
"""The topics of programs, which nobody else writes to and nobody deletes, with their partitions."""

FEED, SIDE, COPIES = "feed", "feed-side", "copies"
TOPICS = {FEED: 3, SIDE: 1, COPIES: 2}
