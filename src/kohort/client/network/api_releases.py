# SPDX-License-Identifier: Apache-2.0
"""Which release of Apache Kafka has brought an API, for readers of a refusal."""

SINCE = {
    10: "Apache Kafka 0.9",
    15: "KIP-40, Apache Kafka 0.9",
    16: "KIP-40, Apache Kafka 0.9",
    19: "KIP-4, Apache Kafka 0.10.1",
    20: "KIP-4, Apache Kafka 0.10.1",
    21: "KIP-107, Apache Kafka 0.11",
    22: "KIP-98, Apache Kafka 0.11",
    27: "KIP-98, Apache Kafka 0.11",
    29: "KIP-140, Apache Kafka 0.11",
    30: "KIP-140, Apache Kafka 0.11",
    31: "KIP-140, Apache Kafka 0.11",
    32: "KIP-133, Apache Kafka 0.11",
    35: "KIP-113, Apache Kafka 1.0",
    37: "KIP-195, Apache Kafka 1.0",
    42: "KIP-229, Apache Kafka 1.1",
    43: "KIP-183, Apache Kafka 2.2",
    44: "KIP-339, Apache Kafka 2.3",
    47: "KIP-496, Apache Kafka 2.4",
    50: "KIP-554, Apache Kafka 2.7",
    51: "KIP-554, Apache Kafka 2.7",
    57: "KIP-584, Apache Kafka 2.7",
    60: "KIP-700, Apache Kafka 2.8",
    61: "KIP-664, Apache Kafka 2.8",
    65: "KIP-664, Apache Kafka 3.0",
    66: "KIP-664, Apache Kafka 3.0",
    69: "KIP-848, Apache Kafka 3.7",
    74: "KIP-714, Apache Kafka 3.7",
}
"""By the number of the API: the proposal, and the release."""
