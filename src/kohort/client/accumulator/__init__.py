# SPDX-License-Identifier: Apache-2.0
"""What a producer decides, as pure machines: they are told the time and touch nothing.

`partitioning` says where a record goes. A `batch` collects records of a partition, its
`partition_queue` keeps their order and their sequences, and the `accumulator` of all queues says
what to send. `transactions` says what a transactional producer may do next, and `error_actions`
what an error means for a batch.
"""
