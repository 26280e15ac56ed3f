# SPDX-License-Identifier: Apache-2.0
"""What runs beside the loop: its threads, tasks of machines, and code of plug-ins."""
