# SPDX-License-Identifier: Apache-2.0
"""What is measured, one module each: `run(bench)` gives its figures."""
