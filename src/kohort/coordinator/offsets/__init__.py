# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: how they are kept, and the three requests that write, read and delete them.

Only replay changes the store; the handlers describe what should be written.
"""
