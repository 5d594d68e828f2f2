"""
What is measured: each engine takes cases and gives samples.

A case has a kind: "decode" behind n positions, "prompt" of n tokens, "batch" of n sequences decoded
together, "busy": as decode, beside a process that computes without end.

A sample is a dict: kind, file, threads, n, engine, way (how the engine was told to do it, where
there are several), tps (tokens/s; of all sequences together), clean (nothing else ran), and what
else the engine tells: host_us, attention_us, weight_bytes, kv_bytes of a token.
"""

import collections
import json
import os
import statistics
import subprocess
import sys

from children import run
from idle_gate import run_alone

FOLDER = os.path.dirname(os.path.abspath(__file__))
BATCH_DEPTH = 16
# Threads that spin at barriers take up to two seconds a token beside a busy process.
MOST_BUSY = 8

Case = collections.namedtuple("Case", "kind file threads n")

# n_generate: tokens that are decoded; repeats: rounds within a process, of which the median counts;
# patience: seconds to wait for an idle machine.
Settings = collections.namedtuple("Settings", "n_generate repeats patience")


def sample(case, engine, tps, clean, way="", **more):
    return {"kind": case.kind, "file": os.path.basename(case.file), "threads": case.threads,
            "n": case.n, "engine": engine, "way": way, "tps": tps, "clean": clean, **more}


def run_case(case, settings, command):
    """Of a command that ends by JSON."""
    if case.kind == "busy":
        command = [sys.executable, os.path.join(FOLDER, "beside_busy.py")] + command
    return run_alone([str(word) for word in command], settings.patience)


class Pawl:
    whole_groups = False

    def __init__(self, program, activations, settings):
        self.program, self.activations, self.settings = program, activations, settings
        self.name = "pawl " + activations

    def version(self):
        return subprocess.run([self.program, "--version"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.split("\n")[0]

    def can(self, _case):
        return True

    def measure(self, cases):
        case, = cases
        decode = ["-p", 0, "-n", self.settings.n_generate, "-d", case.n]
        work = {"decode": decode + ["--steps"], "busy": decode,
                "prompt": ["-p", case.n, "-n", 0],
                "batch": ["-n", self.settings.n_generate, "-d", BATCH_DEPTH, "--batch", case.n]}
        output, clean = run_case(case, self.settings, [
            self.program, "bench", case.file, "--json", "--activations", self.activations,
            "-t", case.threads, "-r", self.settings.repeats
        ] + work[case.kind])
        row, = json.loads(output)["rows"]
        more = {key: row[key] for key in ("host_us", "weight_bytes", "kv_bytes") if key in row}
        if "steps" in row:
            more["attention_us"] = sum(step["us"] for step in row["steps"]
                                       if step["template"] == "attend")
        tps = row["prompt_tps" if case.kind == "prompt" else "decode_tps"]
        return [sample(case, self.name, tps, clean, **more)]


class LlamaCpp:
    """With flash attention and without."""
    whole_groups = False
    name = "llama.cpp"

    def __init__(self, folder, settings):
        self.folder, self.settings = folder, settings

    def version(self):
        told = subprocess.run([os.path.join(self.folder, "llama-bench"), "--version"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=True).stdout
        package = os.path.basename(os.path.dirname(os.path.dirname(self.folder)))
        return "llama.cpp %s, of %s" % (told.split("\n")[0].replace("version: ", ""), package)

    def can(self, _case):
        return True

    def measure(self, cases):
        case, = cases
        return self.measure_batch(case) if case.kind == "batch" else self.measure_one(case)

    def measure_one(self, case):
        work = ["-p", case.n, "-n", 0]
        if case.kind != "prompt":
            n = self.settings.n_generate
            work = ["-p", 0, "-n", min(n, MOST_BUSY) if case.kind == "busy" else n, "-d", case.n]
        output, clean = run_case(case, self.settings, [
            os.path.join(self.folder, "llama-bench"), "-m", case.file, "-t", case.threads,
            "-r", self.settings.repeats, "-fa", "0,1", "-o", "json"] + work)
        samples = []
        for row in json.loads(output):
            assert row["n_threads"] == case.threads, row
            assert case.n == row["n_prompt" if case.kind == "prompt" else "n_depth"], row
            samples.append(sample(case, self.name, statistics.median(row["samples_ts"]), clean,
                                  "flash attention " + ("on" if row["flash_attn"] else "off")))
        assert len(samples) == 2, output
        return samples

    def measure_batch(self, case):
        samples = []
        for flash in ("off", "on"):
            output, clean = run_case(case, self.settings, [
                os.path.join(self.folder, "llama-batched-bench"), "-m", case.file, "-npp",
                BATCH_DEPTH, "-ntg", self.settings.n_generate, "-npl", case.n, "-t", case.threads,
                "-fa", flash, "-c", case.n * (BATCH_DEPTH + self.settings.n_generate),
                "--output-format", "jsonl"])
            row, = [json.loads(line) for line in output.split("\n") if line.startswith("{")]
            assert row["pl"] == case.n and row["n_threads"] == case.threads, row
            samples.append(sample(case, self.name, row["speed_tg"], clean,
                                  "flash attention " + flash))
        return samples


class OpenVino:
    """Takes all cases of a file and number of threads at once, as it is slow to start."""
    whole_groups = True
    name = "OpenVINO"

    def __init__(self, python, settings):
        self.python, self.settings = python, settings
        self.refused = {}  # base name of a file: what it said

    def version(self):
        code = "import openvino_genai; print('OpenVINO GenAI', openvino_genai.__version__)"
        return subprocess.run([self.python, "-c", code], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()

    def command(self, file, threads, cases):
        return [self.python, os.path.join(FOLDER, "openvino_bench.py"), file, threads,
                json.dumps(cases)]

    def try_file(self, file):
        """Remembers whether it refuses that file."""
        process = run([str(word) for word in self.command(file, 1, [])], text=True,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if process.returncode:
            self.refused[os.path.basename(file)] = process.stderr.strip().split("\n")[-1]

    def can(self, case):
        return (case.kind in ("decode", "prompt")
                and os.path.basename(case.file) not in self.refused)

    def measure(self, cases):
        asked = [(case.kind, case.n, self.settings.n_generate, self.settings.repeats)
                 for case in cases]
        output, clean = run_case(cases[0], self.settings,
                                 self.command(cases[0].file, cases[0].threads, asked))
        return [sample(case, self.name, tps, clean)
                for case, tps in zip(cases, json.loads(output))]
