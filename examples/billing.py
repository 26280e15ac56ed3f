# SPDX-License-Identifier: Apache-2.0
"""A consumer as many have one, which test_billing.py tests: it adds up orders, sets aside what it
cannot read, and commits what it has done.
"""

import json
from collections import Counter

from confluent_kafka import Consumer, Message, Producer, TopicPartition


class Billing:
    """Counts the amounts of orders by customer. What is no order goes to the topic `set_aside`."""

    def __init__(
        self, bootstrap: str, group: str, topic: str, *, set_aside: str = "", name: str = "billing"
    ) -> None:
        self.totals: Counter[str] = Counter()
        self.done: dict[int, TopicPartition] = {}  # and not committed yet, by partition
        self.set_aside = set_aside
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "group.id": group,
                "group.protocol": "consumer",  # KIP-848; the classic protocol works as well
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.consumer.subscribe(
            [topic], on_revoke=lambda *_: self.commit(), on_lost=lambda *_: self.done.clear()
        )

    def take(self, most: int = 100, seconds: float = 0.2) -> int:
        """Do what has come, and commit nothing; how many records that was."""
        messages = self.consumer.consume(most, seconds)
        for message in messages:
            self.handle(message)
            place = TopicPartition(message.topic(), message.partition(), message.offset() + 1)
            self.done[message.partition()] = place
        return len(messages)

    def handle(self, message: Message) -> None:
        try:
            order = json.loads(message.value())
            self.totals[order["customer"]] += order["amount"]
        except (ValueError, TypeError, KeyError):
            self.producer.produce(self.set_aside, message.value(), message.key())
            self.producer.flush(10)

    def commit(self) -> None:
        """Commit what is done. Raises KafkaException when this member is out of the group."""
        done = list(self.done.values())
        self.done.clear()
        if done:
            self.consumer.commit(offsets=done, asynchronous=False)

    def step(self) -> int:
        """Take what has come, and commit it."""
        count = self.take()
        self.commit()
        return count

    def close(self) -> None:
        self.consumer.close()
