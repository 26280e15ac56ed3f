"""`python -m kohort.sim`: it is for those who work on Kohort, so nobody has it among his commands."""

import sys

from kohort.sim.main import main

if __name__ == "__main__":
    sys.exit(main())
