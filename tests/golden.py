"""What the checks of the real model share: its golden cases, the tool, and a count of checks."""
import array
import json
import math
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ["top_srcdir"]
PAWL = os.path.join(os.environ["top_builddir"], "tools", "pawl")
MODEL = os.environ["model"]
GOLDEN = os.environ["golden"]  # what the names of its files in tests/data end with
N_VOCAB = {"smollm2-135m": 49152, "gemma3-270m": 262144}[GOLDEN]
N_CASES = {"smollm2-135m": 8, "gemma3-270m": 6}[GOLDEN]


def read_json(name):
    with open(os.path.join(SOURCE, "tests", "data", name), encoding="utf-8") as f:
        return json.load(f)


def cases():
    return read_json(f"golden-{GOLDEN}.json")["cases"]


def forced(case):
    """The prompt and the reference's continuation."""
    return case["tokens"] + case["greedy"]["tokens"]


def pawl(*arguments, text=b""):
    """Status, stdout and stderr of the tool."""
    done = subprocess.run([PAWL, *map(str, arguments)], input=text, capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def evaluate(tokens, *options, first=0):
    """The logits of `pawl eval`, an array of f32, N_VOCAB for each token from the first on."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "logits")
        status, _, said = pawl("eval", MODEL, "--tokens", ",".join(map(str, tokens)),
                               "--logits", path, "--from", first, *options)
        if status:
            sys.exit(f"pawl eval: status {status}: {said}")
        logits = array.array("f")
        with open(path, "rb") as f:
            logits.frombytes(f.read())
    if sys.byteorder != "little":
        logits.byteswap()
    if len(logits) != (len(tokens) - first) * N_VOCAB:
        sys.exit(f"pawl eval: {len(logits)} logits for {len(tokens)} tokens")
    return logits


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def that(self, what, truth, found=""):
        """Counts one check and says which failed."""
        if truth:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}: {found}")

    def at_most(self, what, value, limit):
        """False for a value that is no number, too."""
        self.that(what, value <= limit, f"{value:.6g}, at most {limit:g} is allowed")

    def skip(self, what, reason):
        self.skipped += 1
        print(f"skipped: {what}: {reason}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(1 if self.failed or not self.passed + self.skipped else 0)


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def rms(values):
    return math.sqrt(mean(x * x for x in values))
