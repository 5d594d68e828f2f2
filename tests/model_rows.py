"""
Whole rows of logits at every position of the golden cases against tests/reference.py, a float64
evaluation of the same file.  Needs numpy and gguf.

The reference's final states, which determine its logits, are kept in the cache folder by what
they were made from.
"""
import hashlib
import tempfile

from golden import *

try:
    import numpy as np
    import gguf
    import reference
except ImportError as e:
    checks = Checks()
    checks.skip("logits of every position against float64", f"no Python package {e.name}")
    checks.end()

ROWS, WORDS = 64, 16384  # at a time

# Of a prompt: the longest that is tried, and that exact mode, which is slow, is tried with.
LONGEST = {"smollm2-135m": (1000, 400), "gemma3-270m": (60, 1)}[GOLDEN]


class Reference:
    def __init__(self):
        self.folder = os.path.join(os.environ["PAWL_CACHE_DIR"], "reference")
        os.makedirs(self.folder, exist_ok=True)
        h = hashlib.sha256()
        for path in MODEL, reference.__file__:
            with open(path, "rb") as f:
                h.update(f.read())
        self.inputs = h.hexdigest()
        self.model = None
        tensors = {t.name: t for t in gguf.GGUFReader(MODEL).tensors}
        # Q8_0, of which f32 holds every value.
        self.output = reference.expand(tensors["token_embd.weight"]).astype(np.float32)

    def states(self, tokens):
        key = hashlib.sha256(f"{self.inputs} {tokens}".encode()).hexdigest()
        path = os.path.join(self.folder, key + ".npy")
        if os.path.exists(path):
            return np.load(path)
        if self.model is None:
            self.model = reference.Model(MODEL)
        self.model.clear()
        states = self.model.states(tokens)
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as f:
            np.save(f, states)
        os.replace(f.name, path)
        return states

    def logits(self, states):
        return np.concatenate([states @ self.output[i:i + WORDS].T.astype(np.float64)
                               for i in range(0, N_VOCAB, WORDS)], axis=1)


def log_p(logits):
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


class Differences:
    """Over positions: reference first in the divergence."""

    def __init__(self):
        self.most, self.mean, self.divergence, self.lost, self.n = [], [], [], [], 0
        self.surprise = []  # by how much less likely the next token is

    def add(self, exact, other, following):
        """following: the next tokens, for as many of the rows as there are."""
        d = np.abs(other - exact)
        p, q = log_p(exact), log_p(other)
        top = exact.argmax(axis=1)
        second, first = np.partition(exact, -2, axis=1)[:, -2:].T
        self.most.extend(d.max(axis=1))
        self.mean.extend(d.mean(axis=1))
        self.divergence.extend((np.exp(p) * (p - q)).sum(axis=1))
        self.lost.extend((first - second)[other.argmax(axis=1) != top])
        rows = np.arange(len(following))
        self.surprise.extend(p[rows, following] - q[rows, following])
        self.n += len(exact)

    def __add__(self, other):
        both = Differences()
        for name in "most", "mean", "divergence", "lost", "n", "surprise":
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def perplexity(self):
        """The part of the exact one by which it is larger."""
        return math.expm1(np.mean(self.surprise))

    def text(self):
        return (f"{self.n} positions, logit differences: largest {max(self.most):.4g}, mean "
                f"{np.mean(self.mean):.3g}; divergence: mean {np.mean(self.divergence):.3g}, "
                f"largest {max(self.divergence):.3g}; perplexity off by "
                f"{self.perplexity():+.2g}; {len(self.lost)} likeliest tokens differ, the largest "
                f"margin among them {max(self.lost, default=0):.3g}")


def compare(exact, tokens, *options):
    rows = np.array(evaluate(tokens, *options)).reshape(-1, N_VOCAB)
    states = exact.states(tokens)
    differences = Differences()
    for i in range(0, len(tokens), ROWS):
        differences.add(exact.logits(states[i:i + ROWS]), rows[i:i + ROWS].astype(np.float64),
                        tokens[i + 1:i + 1 + ROWS])
    return differences


def check(checks, exact, some, what, options, limits):
    total = Differences()
    for case in some:
        d = compare(exact, forced(case), *options)
        checks.at_most(f"{what}: {case['name']}: largest logit difference", max(d.most),
                       limits["logit"])
        checks.at_most(f"{what}: {case['name']}: mean divergence", np.mean(d.divergence),
                       limits["divergence"])
        checks.that(f"{what}: {case['name']}: the reference's token",
                    max(d.lost, default=0) <= limits["margin"], max(d.lost, default=0))
        total += d
    checks.at_most(f"{what}: perplexity beside float64", abs(total.perplexity()),
                   limits["perplexity"])
    print(f"{what}: {total.text()}")


if __name__ == "__main__":
    checks = Checks()
    exact = Reference()
    all_cases, short = ([case for case in cases() if len(case["tokens"]) <= longest]
                        for longest in LONGEST)
    checks.that("there are cases", len(all_cases) >= 5 and short, len(all_cases))
    check(checks, exact, all_cases, "a16", [],
          {"logit": 0.15, "divergence": 5e-6, "margin": 0.1, "perplexity": 1e-3})
    check(checks, exact, short, "exact", ["--exact"],
          {"logit": 2e-3, "divergence": 1e-9, "margin": 0.005, "perplexity": 1e-5})
    checks.end()
