#!/usr/bin/env python3
"""beside_busy.py COMMAND...: runs it beside a process that computes without end."""

import subprocess
import sys

with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
    try:
        status = subprocess.run(sys.argv[1:], check=False).returncode
    finally:
        busy.kill()
sys.exit(status)
