# SPDX-License-Identifier: Apache-2.0
"""Owners of one remote log that take it from each other, while everything goes wrong.

The cluster is a model of what Apache Kafka 3.7.2, 3.9.1 and 4.3.1 were seen to do. The owners are
the machines of `kohort.remote`.
"""
