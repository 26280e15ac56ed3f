# SPDX-License-Identifier: Apache-2.0
"""Where tables are kept: a directory, a prefix of a bucket or container, or a folder of HDFS."""
