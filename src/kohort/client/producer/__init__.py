# SPDX-License-Identifier: Apache-2.0
"""The asyncio producer: records to topics, in batches, once and in order.

`producer` is its face. Its `sender` sends what `client/accumulator` holds, `buffer_memory` bounds
that, and `identity` is who writes.
"""

from kohort.client.accumulator.errors import DeliveryError, TransactionError
from kohort.client.producer.producer import Producer
from kohort.client.producer.sender import Delivered

__all__ = ["Delivered", "DeliveryError", "Producer", "TransactionError"]
