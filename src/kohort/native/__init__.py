# SPDX-License-Identifier: Apache-2.0
"""What of Kohort is written in C, where that was built, and the choice whether to use it."""
