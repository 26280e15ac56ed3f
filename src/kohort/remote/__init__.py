# SPDX-License-Identifier: Apache-2.0
"""A log that is a partition of another Kafka cluster, as pure machines.

Whoever wants the log makes a `claim`, writes by a `writer` from then on, and keeps it by what its
`tenure` asks for.
"""
