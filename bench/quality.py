#!/usr/bin/env python3
"""
How far from what a model's file states Pawl and llama.cpp are: perplexity of a text and mean
divergence from a float64 evaluation, over the same positions.  bench/quality.sh runs it.

The text is cut into windows; in each, as llama-perplexity does it, the second half is scored, BOS
replacing the first token where the model wants it.
"""

import json
import math
import os
import re
import subprocess
import sys

from checks import Parser, can_write, is_file, is_program, refuse, whole, write_text
from children import end_on_signals, run

CACHE = os.environ.get("PAWL_CACHE_DIR") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pawl")
PACKAGES = os.path.join(CACHE, "python")
sys.path.append(PACKAGES)
try:
    import numpy as np
    from quality_engines import Exact, Pawl, Peer
except ImportError as error:
    MISSING = error.name
else:
    MISSING = None

BLOCK, ROWS = 64, 2  # of positions: that are multiplied, and compared, at a time


def arguments():
    parser = Parser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("f32", help="the same, its weights expanded to F32")
    parser.add_argument("text")
    parser.add_argument("--pawl", required=True, help="the tool")
    parser.add_argument("--peer", required=True, help="folder of llama-perplexity")
    parser.add_argument("--peer-logits", required=True, help="what bench/peer_logits.c makes")
    parser.add_argument("--cache", required=True, help="folder for the states in float64")
    parser.add_argument("--length", type=whole(4), default=512, help="of a window (default: 512)")
    parser.add_argument("--windows", type=whole(1), help="no more than these")
    parser.add_argument("--threads", type=whole(1), default=os.cpu_count())
    parser.add_argument("--json", metavar="FILE", help="where to write what was measured")
    options = parser.parse_args()
    for path in options.model, options.f32, options.text:
        is_file(path)
    for program in options.pawl, options.peer_logits, perplexity_program(options):
        is_program(program)
    if options.json:
        can_write(options.json)
    return options


def perplexity_program(options):
    return os.path.join(options.peer, "llama-perplexity")


def engines(options):
    def pawl(*some):
        return Pawl(options.pawl, options.model, options.length // 2, options.threads, *some)

    def peer(model, cache):
        return Peer(options.peer_logits, model, options.length // 2, options.threads, cache)

    return {
        "Pawl a16, KV f16": pawl(),
        "Pawl a16, KV q8_0": pawl("--kv", "q8_0"),
        "Pawl a8, KV f16": pawl("--activations", "a8"),
        "Pawl a8, KV q8_0": pawl("--activations", "a8", "--kv", "q8_0"),
        "llama.cpp, KV f16": peer(options.model, "f16"),
        "llama.cpp, weights F32, KV f32": peer(options.f32, "f32"),
    }


def output(command, given=None):
    """What it prints; a failure, of which it has said why, ends this process."""
    process = run(command, given, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.returncode:
        sys.exit("%s: exit status %d" % (command[0], process.returncode))
    return process.stdout


def same_ids(options):
    """The ids of the text, on which both agree, and whether the first of them is a BOS."""
    with open(options.text, "rb") as file:
        text = file.read()
    command = [options.pawl, "tokenize", options.model, "--no-special"]

    def ids(*some):
        return json.loads(output(command + list(some), text))

    ours, bare = ids(), ids("--no-bos")
    theirs = output([options.peer_logits, options.model, "ids"], text)
    if ours != list(map(int, theirs.split())):
        sys.exit("Pawl and llama.cpp disagree about the tokens of the text")
    return ours, ours != bare


def cut(ids, has_bos, length, most):
    """Windows as they are evaluated, with the tokens that follow each of their positions."""
    whole = [ids[i:i + length] for i in range(0, len(ids) - length + 1, length)][:most]
    return [([ids[0]] + w[1:] if has_bos else w, w[1:]) for w in whole]


def normalizer(logits, most):
    """Logarithms of the sums of exponentials of rows, of which most are the largest."""
    return most + np.log(np.exp(logits - most[:, None]).sum(axis=1))


class Truth:
    """A few exact rows and what every engine is compared with."""

    def __init__(self, logits, following):
        self.logits, self.following = logits, following
        self.top = logits.argmax(axis=1)
        self.normalizer = normalizer(logits, logits.max(axis=1))
        self.p = np.exp(logits - self.normalizer[:, None])


class Score:
    """Of an engine, a list item for each scored position."""

    def __init__(self):
        self.surprise, self.divergence, self.same, self.largest = [], [], [], 0

    def add(self, truth, logits):
        rows = np.arange(len(logits))
        top, difference = logits.argmax(axis=1), truth.logits - logits
        total = normalizer(logits.astype(np.float64), logits[rows, top].astype(np.float64))
        self.surprise.extend(total - logits[rows, truth.following])
        self.divergence.extend(np.einsum("ij,ij->i", truth.p, difference)
                               - truth.normalizer + total)
        self.same.extend(top == truth.top)
        self.largest = max(self.largest, float(-difference.min()), float(difference.max()))

    def row(self, name):
        return {"name": name, "perplexity": math.exp(np.mean(self.surprise)),
                "mean_divergence": float(np.mean(self.divergence)),
                "largest_divergence": float(np.max(self.divergence)),
                "same_top": float(np.mean(self.same)), "largest_logit_difference": self.largest}


def add_rows(scores, exact, following, logits, j):
    """Adds exact rows, which are those from row j on of each engine's logits."""
    truth = Truth(exact, following[:len(exact)])
    scores["float64"].add(truth, exact)
    for name, rows in logits.items():
        scores[name].add(truth, rows[j:j + len(exact)])


def score(options, windows):
    """{engine: Score}; the last position of a window, which nothing follows, is not scored."""
    exact, first = Exact(options.model, options.cache), options.length // 2
    streams = {name: engine.windows([w for w, _ in windows])
               for name, engine in engines(options).items()}
    scores = {name: Score() for name in ["float64", *streams]}
    for k, (window, following) in enumerate(windows):
        states = exact.states(window)[first:-1]
        logits = {name: next(stream).reshape(len(states) + 1, -1)
                  for name, stream in streams.items()}
        for i in range(0, len(states), BLOCK):
            truth = exact.logits(states[i:i + BLOCK])
            for j in range(i, min(i + BLOCK, len(states)), ROWS):
                add_rows(scores, truth[j - i:j - i + ROWS], following[first + j:], logits, j)
        print(f"window {k + 1} of {len(windows)}", file=sys.stderr)
    return scores


def own_perplexity(options, model, *more):
    """What llama-perplexity says of as many windows."""
    said = run([perplexity_program(options), "-m", model, "-f", options.text, "-c",
                str(options.length), "--chunks", str(options.windows), "-t", str(options.threads),
                *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    found = re.search(r"PPL = ([0-9.]+)", said)
    if not found:
        sys.exit("llama-perplexity gives no estimate:\n" + said[-2000:])
    return float(found.group(1))


def measure(options):
    ids, has_bos = same_ids(options)
    windows = cut(ids, has_bos, options.length, options.windows)
    if not windows:
        refuse("%s: %d tokens are less than a window of %d" %
               (options.text, len(ids), options.length))
    options.windows = len(windows)
    rows = [s.row(name) for name, s in score(options, windows).items()]
    own = {"llama.cpp, KV f16": own_perplexity(options, options.model),
           "llama.cpp, weights F32, KV f32": own_perplexity(
               options, options.f32, "-ctk", "f32", "-ctv", "f32", "-fa", "off")}
    f32 = rows[-1]["perplexity"]
    for row in rows:
        row["to_f32"] = row["perplexity"] / f32 - 1
        row["llama_perplexity"] = own.get(row["name"])
    return {"model": os.path.basename(options.model), "tokens": len(windows) * options.length,
            "scored": len(windows) * (options.length - options.length // 2 - 1), "rows": rows}


def table(result):
    yield (f"`{result['model']}`: {result['tokens']} tokens, {result['scored']} of them scored\n\n"
           "| | perplexity | to llama.cpp's, F32 | `llama-perplexity` | mean KL | largest KL "
           "| same likeliest | largest logit difference |\n|---|---|---|---|---|---|---|---|")
    for row in result["rows"]:
        own = row["llama_perplexity"]
        yield (f"| {row['name']} | {row['perplexity']:.4f} | {100 * row['to_f32']:+.4f} % | "
               f"{'' if own is None else format(own, '.4f')} | {row['mean_divergence']:.2g} | "
               f"{row['largest_divergence']:.2g} | {100 * row['same_top']:.2f} % | "
               f"{row['largest_logit_difference']:.2g} |")


def main():
    options = arguments()
    if MISSING:
        refuse("there is no Python package %s, nor in %s, where bench/quality.sh installs it"
                 % (MISSING, PACKAGES))
    end_on_signals()
    result = measure(options)
    print("\n".join(table(result)))
    if options.json:
        write_text(options.json, json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
