#!/usr/bin/env python3
"""
Pawl beside its peers on the same file: builds or finds them, waits for an idle machine, measures in
turns, and prints medians, ratios and shares of memory bandwidth.  bench/performance.sh calls it
for what docs/performance.md shows.
"""

import datetime
import itertools
import json
import math
import os
import subprocess
import sys

from checks import (Parser, can_write, is_file, is_program, listed, refuse, whole)
from children import end_on_signals, run
from engines import Case, LlamaCpp, OpenVino, Pawl, Settings
from idle_gate import run_alone
import report

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
CACHE = os.environ.get("PAWL_CACHE_DIR") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pawl")
PAWL, READ_BANDWIDTH = os.path.join("tools", "pawl"), os.path.join("bench", "read_bandwidth")


def arguments():
    parser = Parser(description=__doc__)
    parser.add_argument("model", nargs="?",
                        default=os.path.join(CACHE, "SmolLM2-135M-Instruct.Q4_1.gguf"),
                        help="GGUF file (default: SmolLM2-135M-Instruct.Q4_1.gguf of the cache "
                        "folder, where tools/fetch-model.sh puts it)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="FOLDER",
                        help="where Pawl was built (default: build)")
    parser.add_argument("--activations", type=listed(str), default=["a16"], metavar="A,...",
                        help="a16, a8 or both")
    parser.add_argument("-t", "--threads", type=listed(whole(1)), default=[1, 2], metavar="N,...")
    parser.add_argument("-d", "--depths", type=listed(whole(0)), default=[0], metavar="N,...",
                        help="positions before what is decoded; '': none")
    parser.add_argument("-p", "--prompts", type=listed(whole(1)), default=[128], metavar="N,...",
                        help="lengths of prompts; '': none")
    parser.add_argument("-n", "--generate", type=whole(1), default=64, metavar="N")
    parser.add_argument("-r", "--rounds", type=whole(1), default=5)
    parser.add_argument("--repeats", type=whole(1, 100), default=2,
                        help="within a process, of which the median counts (default: 2)")
    parser.add_argument("--batch", type=listed(whole(1, 8)), default=[], metavar="N,...",
                        help="sequences decoded together by one thread")
    parser.add_argument("--busy", action="store_true",
                        help="decode beside a process that computes without end as well")
    parser.add_argument("--openvino", action="store_true", help="beside OpenVINO GenAI as well")
    parser.add_argument("--quantize", type=listed(str), metavar="TYPE,...",
                        help="the model re-quantized by llama-quantize instead of itself")
    parser.add_argument("--patience", type=whole(0), default=60, metavar="SECONDS",
                        help="how long to wait for an idle machine before a disturbed run "
                        "(default: 60)")
    parser.add_argument("--at-least", type=float, metavar="RATIO",
                        help="exit with 1 when a ratio is below this")
    parser.add_argument("--json", metavar="FILE",
                        help="everything measured, written after every round")
    return parser.parse_args()


def check(options):
    """Refuses what would fail, or measure nothing, only after minutes."""
    if not options.threads:
        refuse("-t: no number of threads")
    if not options.activations or set(options.activations) - {"a16", "a8"}:
        refuse("--activations: a16, a8 or both")
    if not (options.depths or options.prompts or options.batch or options.busy):
        refuse("nothing to measure")
    if options.at_least is not None and not math.isfinite(options.at_least):
        refuse("--at-least %s is no ratio" % options.at_least)
    if options.at_least is not None and not (options.depths or options.prompts):
        refuse("--at-least is about -d and -p, and neither is measured")
    is_file(options.model)
    for program in PAWL, READ_BANDWIDTH:
        is_program(os.path.join(options.build, program))
    if options.json:
        can_write(options.json)


def script(name):
    """What a script beside this one prints."""
    process = run([os.path.join(BENCH, name)], stdout=subprocess.PIPE, text=True)
    if process.returncode:
        raise SystemExit("%s: exit status %d" % (name, process.returncode))
    return process.stdout.strip()


def quantized(model, wanted, llama_cpp):
    """The model in another type, in the cache folder."""
    stem = os.path.basename(model).rsplit(".", 2)[0]
    path = os.path.join(CACHE, "%s.%s.gguf" % (stem, wanted))
    if not os.path.exists(path):
        process = run([os.path.join(llama_cpp, "llama-quantize"), "--allow-requantize", model,
                       path + ".part", wanted], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
        if process.returncode:
            if os.path.exists(path + ".part"):
                os.remove(path + ".part")
            refuse("--quantize: llama-quantize makes no %s of %s" % (wanted, model))
        os.replace(path + ".part", path)
    return path


def cases_of(options, file, threads):
    cases = [Case("decode", file, threads, depth) for depth in options.depths]
    cases += [Case("prompt", file, threads, length) for length in options.prompts]
    if threads == 1:
        cases += [Case("batch", file, threads, n) for n in options.batch]
    if options.busy and threads == max(options.threads):
        cases.append(Case("busy", file, threads, 0))
    return cases


def read_bandwidth(options, file, threads):
    """Of as much memory as the file has."""
    megabytes = max(threads, os.path.getsize(file) >> 20)
    program = os.path.join(options.build, READ_BANDWIDTH)
    output, clean = run_alone([program, str(threads), str(megabytes)], options.patience)
    return {"file": os.path.basename(file), "threads": threads, "gbs": float(output),
            "clean": clean}


def measure_group(engines, cases, number):
    """One round of the cases of a file and number of threads; engines take turns to be first."""
    samples = []
    for case in cases:
        able = [engine for engine in engines if not engine.whole_groups and engine.can(case)]
        for engine in able if number % 2 == 0 else reversed(able):
            samples += engine.measure([case])
    for engine in engines:
        able = [case for case in cases if engine.whole_groups and engine.can(case)]
        if able:
            samples += engine.measure(able)
    return samples


def command_output(*command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False).stdout.strip()


def commit():
    """Marked when sources differ from it; the document that is measured for does not count."""
    changes = command_output("git", "status", "--porcelain", "--untracked-files=no", "--", ".",
                             ":!docs")
    return command_output("git", "describe", "--always") + ("-dirty" if changes else "")


def describe(options, engines):
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        names = [line.split(":", 1)[1].strip() for line in cpuinfo
                 if line.startswith("model name")]
    return {"machine": {"cpu": names[0] if names else "unknown",
                        "cpus": len(os.sched_getaffinity(0)),
                        "system": " ".join(os.uname()[0:3:2])},
            "date": datetime.date.today().isoformat(),
            "commit": commit(),
            "versions": {engine.name: engine.version() for engine in engines},
            "generate": options.generate, "command": " ".join(sys.argv[1:])}


def main():
    options = arguments()
    check(options)
    end_on_signals()
    settings = Settings(options.generate, options.repeats, options.patience)
    plugins = os.path.join(options.build, "plugins", ".libs")
    os.environ.setdefault("PAWL_PLUGIN_PATH", plugins)
    llama_cpp = script("peer.sh")
    files = [options.model]
    if options.quantize:
        files = [quantized(options.model, wanted, llama_cpp) for wanted in options.quantize]
    engines = [Pawl(os.path.join(options.build, PAWL), activations, settings)
               for activations in options.activations]
    engines.append(LlamaCpp(llama_cpp, settings))
    refused = {}
    if options.openvino:
        openvino = OpenVino(script("openvino.sh"), settings)
        for file in files:
            openvino.try_file(file)
        engines.append(openvino)
        refused = openvino.refused
    data = {**describe(options, engines), "rounds": 0, "refused": refused, "bandwidth": [],
            "samples": []}
    for number in range(options.rounds):
        for file, threads in itertools.product(files, options.threads):
            print("round %d of %d: %s, %d thread%s" %
                  (number + 1, options.rounds, os.path.basename(file), threads,
                   "" if threads == 1 else "s"), file=sys.stderr)
            data["bandwidth"].append(read_bandwidth(options, file, threads))
            data["samples"] += measure_group(engines, cases_of(options, file, threads), number)
        data["rounds"] = number + 1
        if options.json:
            report.write_json(options.json, data)
    print(report.text([data]))
    if options.at_least is not None:
        least = report.least_ratio(data)
        if least is None:
            raise SystemExit("nothing was measured of Pawl and a peer")
        if least < options.at_least:
            raise SystemExit("a ratio is below %g" % options.at_least)


if __name__ == "__main__":
    main()
