"""Processes that do not outlive the one that started them."""

import contextlib
import os
import signal
import subprocess
import sys

PATIENCE = 5  # seconds that a process has to end when it is asked to


def _leave(number, _frame):
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def end_on_signals():
    """
    From now on SIGTERM, SIGINT and SIGHUP, where they are not ignored, end this process as
    sys.exit() does, children first.
    """
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _leave)


def _end(process):
    """With everything in its group."""
    for number in signal.SIGTERM, signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
            return


@contextlib.contextmanager
def running(command, **options):
    """A process in a group of its own, which is ended when the block is left by an exception."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        except BaseException:
            _end(process)
            raise


def run(command, text_in=None, **options):
    """As subprocess.run(), but for what running() does."""
    with running(command, **options) as process:
        out, errors = process.communicate(text_in)
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
