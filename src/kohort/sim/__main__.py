# SPDX-License-Identifier: Apache-2.0
"""`python -m kohort.sim`: for those who work on Kohort, so it is no command of its own."""

import sys

from kohort.sim.main import main

if __name__ == "__main__":
    sys.exit(main())
