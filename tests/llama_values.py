"""
What llama-eval-callback printed of every node, of two runs: llama_values.py TRUTH FOUND.

Fails unless both looked at the same nodes, and the values of each differ by at most MOST of their
root mean square.
"""
import math
import re
import sys

MOST = 0.01
NODE = re.compile(r"common_debug_cb_eval: +(.+?) = \((\w+)\) +(\w+)\(.*\) = \{(.*)\}$")
NUMBER = re.compile(r"-?(?:\d+\.\d+|inf|nan)")


def nodes(path):
    """[((name, type, op, dims), printed values)], the sum last."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            match = NODE.match(line)
            if match:
                found.append((match.groups(), []))
            elif found and line.startswith("    "):
                found[-1][1].extend(map(float, NUMBER.findall(line)))
    return found


def distance(truth, found):
    """Of the values without the sum, of which those that are not finite have to be equal."""
    if len(truth) != len(found) or not truth:
        return math.inf
    pairs = list(zip(truth[:-1], found[:-1]))
    if any(x != y for x, y in pairs if not math.isfinite(x) or not math.isfinite(y)):
        return math.inf
    pairs = [(x, y) for x, y in pairs if math.isfinite(x)]
    size = math.sqrt(sum(x * x for x, _ in pairs))
    # Four decimals are printed.
    return (math.sqrt(sum((x - y) ** 2 for x, y in pairs)) - 1e-4 * math.sqrt(len(pairs))) / max(
        size, 1e-9)


def main():
    truth, found = nodes(sys.argv[1]), nodes(sys.argv[2])
    if len(truth) < 100 or [what for what, _ in truth] != [what for what, _ in found]:
        print(f"{len(truth)} and {len(found)} nodes, or others")
        return 1
    far = [(distance(x, y), what) for (what, x), (_, y) in zip(truth, found)]
    for d, what in sorted(far)[::-1][:3]:
        print(f"{d:.4f} {' '.join(what)}")
    return max(far)[0] > MOST


sys.exit(main())
