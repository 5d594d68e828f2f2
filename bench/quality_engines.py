"""
The logits of a text, window by window, from Pawl, from llama.cpp and from the float64 evaluation
of tests/reference.py.
"""

import hashlib
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np

from children import run, running

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import reference  # noqa: E402

WORDS = 16384  # of the vocabulary at a time


def numbers(ids):
    return " ".join(map(str, ids))


class Exact:
    """
    The model's function in float64.  Its final states, which determine its logits, are kept in a
    folder by what they were made from.
    """

    def __init__(self, model, folder):
        self.path, self.folder, self.model = model, folder, None
        os.makedirs(folder, exist_ok=True)
        digest = hashlib.sha256()
        for path in model, reference.__file__:
            with open(path, "rb") as file:
                digest.update(file.read())
        self.inputs = digest.hexdigest()
        self.output = reference.expand({t.name: t for t in gguf.GGUFReader(model).tensors}
                                       ["token_embd.weight"])

    def states(self, ids):
        key = hashlib.sha256(f"{self.inputs} {ids}".encode()).hexdigest()
        path = os.path.join(self.folder, key + ".npy")
        if os.path.exists(path):
            return np.load(path)
        if self.model is None:
            self.model = reference.Model(self.path)
        self.model.clear()
        states = self.model.states(ids)
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            np.save(file, states)
        os.replace(file.name, path)
        return states

    def logits(self, states):
        return np.concatenate([states @ self.output[i:i + WORDS].T
                               for i in range(0, len(self.output), WORDS)], axis=1)


class Pawl:
    """`pawl eval`, which is run for each window."""

    def __init__(self, pawl, model, first, threads, *options):
        self.command = [pawl, "eval", model, "--from", str(first), "--threads", str(threads),
                        *options]

    def windows(self, windows):
        """The logits from position `first` on of each window, one after another."""
        with tempfile.TemporaryDirectory() as folder:
            ids, logits = (os.path.join(folder, name) for name in ("ids", "logits"))
            for window in windows:
                with open(ids, "w", encoding="ascii") as file:
                    file.write(numbers(window))
                command = self.command + ["--tokens", ids, "--logits", logits]
                if run(command).returncode:
                    sys.exit(f"{command[0]} eval failed")
                yield np.fromfile(logits, "<f4")


class Peer:
    """bench/peer_logits.c, which stays alive and holds its breath between windows."""

    def __init__(self, program, model, first, threads, cache):
        self.program, self.model, self.first = program, model, first
        self.threads, self.cache = threads, cache

    def windows(self, windows):
        with tempfile.TemporaryFile() as ids:
            ids.write("\n".join(map(numbers, windows)).encode() + b"\n")
            ids.seek(0)
            n_rows = len(windows[0]) - self.first
            with running([self.program, self.model, self.cache, str(len(windows[0])),
                          str(self.first), str(self.threads)],
                         stdin=ids, stdout=subprocess.PIPE) as process:
                n_vocab = vocabulary(self.model)
                for _ in windows:
                    logits = process.stdout.read(4 * n_rows * n_vocab)
                    if len(logits) != 4 * n_rows * n_vocab:
                        sys.exit(f"{self.program} ended early")
                    yield np.frombuffer(logits, "=f4")


def vocabulary(model):
    tensors = {t.name: t for t in gguf.GGUFReader(model).tensors}
    return int(tensors["token_embd.weight"].shape[1])
