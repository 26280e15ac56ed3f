# SPDX-License-Identifier: Apache-2.0
"""A batch that was written by hand."""

# One record (key "k", value "v", no headers), by hand: what the header says and what follows it.
BY_HAND = bytes.fromhex(
    "0000000000000007"  # base offset 7
    "0000003a"  # 58 bytes follow
    "00000002"  # leader epoch 2
    "02"  # magic
    "54783d9f"  # crc32c of what follows
    "0000"  # attributes
    "00000000"  # last offset delta
    "00000000000003e8"  # base timestamp 1000
    "00000000000003e8"  # max timestamp
    "ffffffffffffffff"  # producer id -1
    "ffff"  # producer epoch -1
    "00000000"  # base sequence 0
    "00000001"  # one record
    "1000000002"  # 8 bytes, no attributes, same time and offset, key of one byte
    "6b"
    "0276"  # value
    "00"  # no headers
)
