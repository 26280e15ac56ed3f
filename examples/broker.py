# SPDX-License-Identifier: Apache-2.0
"""A real broker in a test: start it, use it with a stock client, kill it, use it again."""

from confluent_kafka import Consumer, Producer

from kohort.testing import Broker

with Broker(process=True) as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("greetings", "hello")
    producer.flush(10)

    broker.kill()  # as kill -9 does
    broker.restart()  # on the same address and the same log

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["greetings"])
    message = consumer.poll(20)
    assert message is not None, "nothing came within 20 seconds"
    print("read after the kill:", message.value().decode())
    consumer.close()
