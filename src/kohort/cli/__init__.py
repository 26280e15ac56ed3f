# SPDX-License-Identifier: Apache-2.0
"""The command line. Until a command runs, nothing but argparse and these modules is imported."""
