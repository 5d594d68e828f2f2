#!/usr/bin/env python3
"""beside_busy.py COMMAND...: runs it beside a process that computes without end."""

import os
import sys

from children import end_on_signals, run, running

# Until its parent is another, which it is when this script was killed.
COMPUTE = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1000000):
        pass
"""


def main():
    if len(sys.argv) < 2:
        print("usage: beside_busy.py COMMAND...", file=sys.stderr)
        sys.exit(2)
    end_on_signals()
    try:
        with running([sys.executable, "-c", COMPUTE, str(os.getpid())]):
            status = run(sys.argv[1:]).returncode
            sys.exit(status if status >= 0 else 128 - status)
    except OSError as fault:
        print("beside_busy.py: %s: %s" % (sys.argv[1], fault.strerror), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
