#!/usr/bin/env python3
"""
Pawl beside llama.cpp: interleaves `pawl bench` and `llama-bench` on the same file behind an idle
gate and prints medians and ratios.  bench/peer.sh builds llama-bench.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

from idle_gate import run_alone

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("PAWL_CACHE_DIR") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pawl")


def numbers(text):
    return [int(word) for word in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?",
                        default=os.path.join(CACHE, "SmolLM2-135M-Instruct.Q4_1.gguf"))
    parser.add_argument("--pawl", default=os.path.join(ROOT, "build", "tools", "pawl"))
    parser.add_argument("--peer", help="llama-bench; default: what bench/peer.sh builds")
    parser.add_argument("--activations", choices=("a16", "a8"), default="a16")
    parser.add_argument("-t", "--threads", type=numbers, default=[1, 2])
    parser.add_argument("-d", "--depths", type=numbers, default=[0])
    parser.add_argument("-p", "--prompt", type=int, default=128)
    parser.add_argument("-n", "--generate", type=int, default=64)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("--patience", type=int, default=300, metavar="SECONDS",
                        help="how long to wait for an idle machine before a disturbed run")
    parser.add_argument("--at-least", type=float, metavar="RATIO",
                        help="exit with 1 when a ratio is below this")
    parser.add_argument("--json", metavar="FILE", help="write everything measured")
    return parser.parse_args()


def sizes(options, threads, depth):
    return ["-t", str(threads), "-p", str(options.prompt), "-n", str(options.generate),
            "-d", str(depth)]


def bench_pawl(options, threads, depth):
    output, clean = run_alone([options.pawl, "bench", options.model, "--activations",
                               options.activations, "--json"] + sizes(options, threads, depth),
                              options.patience)
    row, = json.loads(output)["rows"]
    assert row["threads"] == threads and row["depth"] == depth, row
    return {"prompt": row["prompt_tps"], "decode": row["decode_tps"], "clean": clean}


def bench_peer(options, threads, depth):
    output, clean = run_alone([options.peer, "-m", options.model, "-r", "1", "-o", "json"]
                              + sizes(options, threads, depth), options.patience)
    result = {"clean": clean}
    for row in json.loads(output):
        assert row["n_threads"] == threads and row["n_depth"] == depth, row
        result["prompt" if row["n_prompt"] else "decode"] = row["avg_ts"]
    return result


def measure(options):
    """{(threads, depth): {"pawl": [sample...], "peer": [sample...]}}, the order alternating."""
    samples = {}
    for number in range(options.rounds):
        for threads in options.threads:
            for depth in options.depths:
                cell = samples.setdefault((threads, depth), {"pawl": [], "peer": []})
                sides = [("pawl", bench_pawl), ("peer", bench_peer)]
                for side, bench in sides if number % 2 == 0 else reversed(sides):
                    cell[side].append(bench(options, threads, depth))
                print("round %d of %d: %d threads, depth %d" %
                      (number + 1, options.rounds, threads, depth), file=sys.stderr)
    return samples


def median(samples, phase):
    """Over the undisturbed samples; over all of them when there is none."""
    clean = [sample[phase] for sample in samples if sample["clean"]]
    return statistics.median(clean or [sample[phase] for sample in samples])


def summarize(samples):
    rows = []
    for (threads, depth), cell in samples.items():
        for phase in ("prompt", "decode"):
            pawl, peer = median(cell["pawl"], phase), median(cell["peer"], phase)
            rows.append({"phase": phase, "threads": threads, "depth": depth, "pawl_tps": pawl,
                         "peer_tps": peer, "ratio": pawl / peer,
                         "undisturbed": [sum(s["clean"] for s in cell[side])
                                         for side in ("pawl", "peer")]})
    return rows


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        names = [line.split(":", 1)[1].strip() for line in cpuinfo
                 if line.startswith("model name")]
    return {"cpu": names[0] if names else "unknown", "cpus": len(os.sched_getaffinity(0))}


def main():
    options = arguments()
    if options.peer is None:
        options.peer = subprocess.run([os.path.join(ROOT, "bench", "peer.sh")], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout.strip()
    plugins = os.path.join(os.path.dirname(os.path.dirname(options.pawl)), "plugins", ".libs")
    if os.path.isdir(plugins):
        os.environ.setdefault("PAWL_PLUGIN_PATH", plugins)
    samples = measure(options)
    rows = summarize(samples)
    print("%-7s %7s %6s %12s %12s %7s   undisturbed" %
          ("phase", "threads", "depth", "pawl tok/s", "peer tok/s", "ratio"))
    for row in rows:
        print("%-7s %7d %6d %12.1f %12.1f %7.2f   %d and %d of %d" %
              (row["phase"], row["threads"], row["depth"], row["pawl_tps"], row["peer_tps"],
               row["ratio"], *row["undisturbed"], options.rounds))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"machine": machine(), "model": os.path.basename(options.model),
                       "activations": options.activations, "prompt": options.prompt,
                       "generate": options.generate, "rows": rows,
                       "samples": [{"threads": threads, "depth": depth, **cell}
                                   for (threads, depth), cell in samples.items()]}, out, indent=1)
            out.write("\n")
    if options.at_least is not None and min(row["ratio"] for row in rows) < options.at_least:
        raise SystemExit("a ratio is below %g" % options.at_least)


if __name__ == "__main__":
    main()
