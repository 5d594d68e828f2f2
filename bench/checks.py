"""What scripts refuse before they measure: one line and exit status 2."""

import argparse
import contextlib
import os
import sys


def refuse(words):
    print("%s: %s" % (os.path.basename(sys.argv[0]), words), file=sys.stderr)
    sys.exit(2)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        refuse(message)


def whole(least, most=1 << 30):
    """Type of an argument: a whole number."""
    def read(text):
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError("'%s' is no whole number from %d to %d" %
                                             (text, least, most))
        return int(text)
    return read


def listed(read):
    """Type of an argument: a list of some with commas in between; '': none."""
    return lambda text: [read(word) for word in text.split(",")] if text else []


def is_file(path):
    if not os.path.isfile(path):
        refuse("%s: %s" % (path, "no file" if os.path.exists(path) else "there is none"))
    if not os.access(path, os.R_OK):
        refuse("%s: it cannot be read" % path)


def is_program(path):
    is_file(path)
    if not os.access(path, os.X_OK):
        refuse("%s: no program" % path)


def can_write(path):
    """As replacing() does."""
    folder = os.path.dirname(path) or "."
    if (os.path.lexists(path) and not os.path.isfile(path)) or not os.path.isdir(folder) or \
            not os.access(folder, os.W_OK):
        refuse("%s: it cannot be written" % path)


@contextlib.contextmanager
def replacing(path, mode="w", **options):
    """A file that becomes path once all of it is written or, whatever happens, is gone."""
    part = "%s.%d.part" % (path, os.getpid())
    try:
        with open(part, mode, **options) as out:
            yield out
        os.replace(part, path)
    except BaseException as error:
        if os.path.exists(part):
            os.remove(part)
        if isinstance(error, OSError) and error.filename in (None, part):
            error.filename = path
        raise


def write_text(path, text):
    with replacing(path, encoding="utf-8") as out:
        out.write(text)


def finish(main):
    """Ends with the status of main() or, when a file cannot be used, one line and status 1."""
    try:
        status = main()
        sys.stdout.flush()
    except OSError as error:
        # Python would try once more to write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print("%s: %s: %s" % (os.path.basename(sys.argv[0]), error.filename or "standard output",
                              error.strerror), file=sys.stderr)
        status = 1
    sys.exit(status)
