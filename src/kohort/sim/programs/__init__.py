# SPDX-License-Identifier: Apache-2.0
"""Programs that use the clients of this package, each in a process of its own."""
