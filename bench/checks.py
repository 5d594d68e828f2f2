"""What scripts refuse before they measure: one line and exit status 2."""

import argparse
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
    """As write_text() does."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        refuse("%s: it cannot be written" % path)


def write_text(path, text):
    """All of it or, whatever happens, nothing."""
    part = "%s.%d.part" % (path, os.getpid())
    try:
        with open(part, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
