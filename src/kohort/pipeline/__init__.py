# SPDX-License-Identifier: Apache-2.0
"""The pipeline's tables: their columns and files, where these lie, what they are made of, and the
report that is drawn of them.

All of it works by Arrow and without Spark; `kohort.spark` has the jobs that compute tables.
"""
