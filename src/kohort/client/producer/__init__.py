"""The asyncio producer: records to topics, in batches, once and in order.

`producer` is its face. Its `sender` sends what the queue of `client/producing` holds, `room` bounds
that, and `identity` is who writes.
"""

from kohort.client.producer.producer import Producer
from kohort.client.producer.sender import Delivered
from kohort.client.producing.errors import DeliveryError, TransactionError

__all__ = ["Delivered", "DeliveryError", "Producer", "TransactionError"]
