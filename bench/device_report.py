#!/usr/bin/env python3
"""
device_report.py logits GPU REFERENCE POSITIONS TARGET: how far logits are from those of another
target, as a line of JSON; exit status 1 when that is too far.
device_report.py tables FOLDER [ABSENT...]: tables in Markdown of what tools/device-check.sh left in
a folder; models that were not at hand are named.
"""

import array
import contextlib
import json
import os
import re
import sys

from checks import Parser, finish, is_file, refuse, whole
from children import end_on_signals
from report import markdown

# Of the largest logit.  Sums have another order on a GPU, and what is stored as f16 may be rounded
# to the other side.
MOST_DIFFERENCE = 1e-3


def read_logits(path, positions):
    values = array.array("f")
    is_file(path)
    with open(path, "rb") as file:
        data = file.read()
    if not data or len(data) % (positions * values.itemsize):
        refuse("%s: no logits of %d positions" % (path, positions))
    values.frombytes(data)
    n = len(values) // positions
    return [values[i * n:(i + 1) * n] for i in range(positions)]


def likeliest(row):
    return max(range(len(row)), key=row.__getitem__)


def compare(args):
    rows = list(zip(read_logits(args.gpu, args.positions),
                    read_logits(args.reference, args.positions)))
    worst, others, wrong = 0.0, 0, 0
    for got, wanted in rows:
        if len(got) != len(wanted):
            refuse("%s and %s: other vocabularies" % (args.gpu, args.reference))
        largest = max(map(abs, wanted)) or 1.0
        # That a NaN is far from everything takes "not ... <=".
        apart = [abs(a - b) / largest for a, b in zip(got, wanted)]
        worst = float("inf") if any(x != x for x in apart) else max(worst, max(apart))
        chosen, right = likeliest(got), likeliest(wanted)
        others += chosen != right
        wrong += not wanted[right] - wanted[chosen] <= MOST_DIFFERENCE * largest
    is_near = worst <= MOST_DIFFERENCE and not wrong
    print(json.dumps({"target": args.target, "positions": len(rows), "difference": worst,
                      "other_choices": others, "wrong_choices": wrong}))
    if not is_near:
        print("%.2g of the largest logit apart, %d choices wrong" % (worst, wrong), file=sys.stderr)
    return 0 if is_near else 1


def lines_of(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


@contextlib.contextmanager
def results_of(folder, name):
    """The lines of a file, which is refused when the block cannot make sense of them."""
    try:
        yield lines_of(folder, name)
    except (ValueError, LookupError, TypeError, ArithmeticError):
        refuse("%s: not what device-check.sh writes there" % os.path.join(folder, name))


def bench_rows(folder, model, copy):
    table = []
    with results_of(folder, model + ".bench.json") as lines:
        for row in json.loads("\n".join(lines))["rows"] if lines else []:
            gbs = 1e-9 * (row["weight_bytes"] + row["kv_bytes"]) * row["decode_tps"]
            table.append([model, "%d" % row["depth"], "%.1f" % row["decode_tps"],
                          "%.0f" % row["prompt_tps"], "%.1f" % gbs, "%.0f %%" % (100 * gbs / copy),
                          kernels(folder, model), "%.3g" % row["launches"],
                          "%.3g" % row["uploads"], "%.1f" % row["host_us"]])
    return table


def kernels(folder, model):
    """Launches that a captured run replays."""
    for line in lines_of(folder, model + ".plan.txt"):
        found = re.match(r"launches (\d+)", line)
        if found:
            return found.group(1)
    return "-"


def plan_row(folder, model):
    times = {}
    for line in lines_of(folder, model + ".plan.txt"):
        found = re.match(r"(cold|warm) .* ([0-9.]+) ms$", line)
        if found:
            times[found.group(1)] = found.group(2)
    return [model] + [times.get(state, "-") for state in ("cold", "warm")]


def check_row(folder, model):
    with results_of(folder, model + ".check.json") as lines:
        checks = [json.loads(line) for line in lines]
        logits = [check for check in checks if "positions" in check]
        sessions = [check["session"] for check in checks if "session" in check]
        if not logits:
            return [model, "-", "-", "-", "-", "-"]
        return [model, logits[0]["target"], "%d" % sum(check["positions"] for check in logits),
                "%.2g" % max(check["difference"] for check in logits),
                "%d" % sum(check["wrong_choices"] for check in logits),
                "%d the same" % sum(sessions) if sessions else "-"]


def copy_bandwidth(folder):
    with results_of(folder, "machine.txt") as lines:
        copies = [float(line.split()[1]) for line in lines if line.startswith("copy ")]
        if not all(0 < copy < float("inf") for copy in copies):
            raise ValueError
    if not copies:
        refuse("%s: machine.txt has no copy bandwidth" % folder)
    return copies[0]


def tables(args):
    if not os.path.isdir(args.folder):
        refuse("%s: no folder" % args.folder)
    machine = lines_of(args.folder, "machine.txt")
    copy = copy_bandwidth(args.folder)
    models = sorted({name.rsplit(".", 2)[0] for name in os.listdir(args.folder)
                     if name.endswith((".check.json", ".bench.json", ".plan.txt"))})
    speed = [row for model in models for row in bench_rows(args.folder, model, copy)]
    checks = [check_row(args.folder, model) for model in models]
    print("\n".join("- " + line for line in machine[:4]))
    if any(model.startswith("random-") for model in models):
        print("- random-NAME is a file of random weights with the shape of NAME")
    if args.absent:
        print("- not at hand: " + ", ".join(args.absent))
    print("\nSpeed:\n")
    print(markdown(["model", "depth", "decoded tokens/s", "prompt tokens/s", "GB/s", "of copy",
                    "kernels", "launches", "uploads", "host us"], speed))
    print("\nBeside another target, relative to the largest logit:\n")
    print(markdown(["model", "target", "positions", "difference", "wrong choices", "session"],
                   checks))
    print("\nMilliseconds to a plan with its kernels:\n")
    print(markdown(["model", "cold", "warm"], [plan_row(args.folder, model) for model in models]))
    failures = lines_of(args.folder, "failures.txt")
    if failures:
        print("\nFailed:\n\n" + "\n".join("- " + line for line in failures))
    return 0


def main():
    parser = Parser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    logits = commands.add_parser("logits")
    logits.add_argument("gpu")
    logits.add_argument("reference")
    logits.add_argument("positions", type=whole(1))
    logits.add_argument("target")
    logits.set_defaults(run=compare)
    report = commands.add_parser("tables")
    report.add_argument("folder")
    report.add_argument("absent", nargs="*")
    report.set_defaults(run=tables)
    args = parser.parse_args()
    end_on_signals()
    return args.run(args)


if __name__ == "__main__":
    finish(main)
