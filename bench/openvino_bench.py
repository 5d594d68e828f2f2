#!/usr/bin/env python3
"""
openvino_bench.py MODEL THREADS CASES: tokens/s of OpenVINO GenAI on a GGUF file for each case, a
JSON list.  CASES is one of [kind, n, generate, repeats]: "prompt" of n tokens, or "decode" of
`generate` tokens behind n.  Prompts are random: it keeps the ones that it has seen.
"""

import json
import random
import statistics
import sys

import numpy
import openvino
import openvino_genai

MIN_PROMPT = 4
SMALLEST_VOCABULARY = 32000


def generate(pipeline, n_prompt, n_generate):
    ids = numpy.array([[random.randrange(SMALLEST_VOCABULARY) for _ in range(n_prompt)]])
    inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids),
                                            openvino.Tensor(numpy.ones_like(ids)))
    config = openvino_genai.GenerationConfig(max_new_tokens=n_generate, ignore_eos=True,
                                             do_sample=False)
    result = pipeline.generate(inputs, config)
    assert len(result.tokens[0]) == n_generate, len(result.tokens[0])
    return result.perf_metrics


def measure(pipeline, kind, n, n_generate):
    if kind == "prompt":
        return 1000 * n / generate(pipeline, n, 1).get_ttft().mean
    return 1000 / generate(pipeline, max(n, MIN_PROMPT), n_generate + 1).get_tpot().mean


def main():
    model, threads, cases = sys.argv[1:]
    pipeline = openvino_genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=int(threads))
    generate(pipeline, 16, 8)
    speeds = [statistics.median([measure(pipeline, kind, n, n_generate) for _ in range(repeats)])
              for kind, n, n_generate, repeats in json.loads(cases)]
    json.dump(speeds, sys.stdout)


if __name__ == "__main__":
    main()
