"""
llama.cpp with libggml-pawl.so, in one process: what `llama-host.sh` asks for.

    llama_host.py golden MODEL CASES on|off    the golden prompts, flash attention on or off
    llama_host.py golden MODEL CASES q8_0      with a cache of that type
    llama_host.py grow MODEL                   a long answer
    llama_host.py together MODEL               four answers at once, of sequences that come and go
    llama_host.py contexts MODEL               two models in two threads
    llama_host.py chat MODEL LENGTH stop|shift a chat of so many tokens beside short ones that come
                                               and go; the context holds it, or is shifted when full
    llama_host.py devices                      the names of the host's devices
    llama_host.py two GGML                     the same, and whether another ggml has ours
    llama_host.py answer MODEL                 the start of an answer, whoever computes it

The server of xllamacpp is the host.  The last line counts checks, as model-test.sh reads it.
"""
import ctypes
import json
import math
import os
import sys
import threading

import xllamacpp

LIBRARY = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
# Of the reference's two largest logits: below it another token may be the largest; and the mean
# divergence.  A cache of q8_0 rounds more than all else.
MARGIN = {"f16": 0.1, "q8_0": 0.5}
MOST_KL = {"f16": 1e-5, "q8_0": 2e-3}
counts = {True: 0, False: 0}


def check(name, is_right, detail=""):
    counts[bool(is_right)] += 1
    if not is_right:
        print(f"FAILED: {name}: {detail}")


def end():
    print(f"{counts[True]} passed, {counts[False]} failed, 0 skipped")


def devices():
    LIBRARY.ggml_backend_load_all()
    return [device["name"] for device in xllamacpp.get_device_info()]


def counters_text():
    LIBRARY.ggml_backend_reg_by_name.restype = ctypes.c_void_p
    LIBRARY.ggml_backend_reg_get_proc_address.restype = ctypes.c_void_p
    registry = ctypes.c_void_p(LIBRARY.ggml_backend_reg_by_name(b"Pawl"))
    address = LIBRARY.ggml_backend_reg_get_proc_address(registry, b"pawl_ggml_counters")
    room = ctypes.create_string_buffer(4096)
    ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)(address)(room, len(room))
    return room.value.decode()


def counters():
    """What the backend counted so far, {"graphs": 12, ...}."""
    numbers = counters_text().split(";")[0]
    return {name: int(n) for name, n in (word.rsplit(" ", 1) for word in numbers.split(", "))}


def declined():
    """The ops that the backend left to the host's own."""
    words = counters_text().partition("; declined: ")[2]
    return {word.split()[0] for word in words.split(",") if word}


def server(model, flash_attention=True, length=1024, parallel=1, **others):
    kinds = xllamacpp.llama_flash_attn_type
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx, params.n_parallel, params.n_gpu_layers = length * parallel, parallel, 99
    params.warmup = params.fit_params = False
    params.no_extra_bufts = True
    params.kv_unified = False
    params.flash_attn_type = (kinds.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash_attention
                              else kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    for name, value in others.items():
        setattr(params, name, value)
    return xllamacpp.Server(params)


def answer(host, prompt, n, n_probs=0):
    result = host.handle_completions({"prompt": prompt, "n_predict": n, "temperature": 0,
                                      "n_probs": n_probs, "cache_prompt": False,
                                      "ignore_eos": False})
    if isinstance(result, (str, bytes)):
        result = json.loads(result)
    return result["choices"][0]


def divergence(truth, found):
    """
    At most by what is beyond the reference's largest logits, the Kullback-Leibler divergence: these
    tokens, and all others as one.
    """
    logp = {i: x - truth["normalizer"] for i, x in zip(truth["ids"], truth["logits"]) if i in found}
    rest, seen = 1 - sum(map(math.exp, logp.values())), 1 - sum(math.exp(found[i]) for i in logp)
    kl = sum(math.exp(p) * (p - found[i]) for i, p in logp.items())
    return kl + rest * math.log(rest / seen) if rest > 1e-6 and seen > 1e-6 else kl


def golden(model, path, what):
    cache = "q8_0" if what == "q8_0" else "f16"
    kind = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + cache.upper())
    host = server(model, what != "off", cache_type_k=kind, cache_type_v=kind)
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    kls = []
    for case in cases:
        greedy, steps = case["greedy"], []
        if len(case["tokens"]) + len(greedy["tokens"]) < 1000:
            steps = answer(host, case["tokens"], len(greedy["tokens"]), 64)["logprobs"]["content"]
            check(f"{case['name']}: an answer", steps)
        truths = {c["position"] - len(case["tokens"]) + 1: c for c in case["checks"]}
        for i, step in enumerate(steps):
            if i in truths:
                kls.append(divergence(truths[i], {t["id"]: t["logprob"]
                                                  for t in step["top_logprobs"]}))
            if step["id"] != greedy["tokens"][i]:
                check(f"{case['name']}: token {i}", greedy["margin"][i] <= MARGIN[cache],
                      f"{step['id']}, not {greedy['tokens'][i]} of margin {greedy['margin'][i]}")
                break
    check("divergences", len(kls) >= 2 * len(cases), len(kls))
    mean = sum(kls) / max(len(kls), 1)
    print(f"mean divergence of {len(kls)} positions: {mean:.2g}")
    check("mean divergence", mean <= MOST_KL[cache], mean)
    seen = counters()
    check("every graph is computed by a plan", seen["fallbacks"] == 0 and seen["runs"] > 200, seen)
    check("a plan for each shape", seen["optimizes"] <= seen["shapes"], seen)
    check("no plan is built twice", seen["rebuilds"] == 0, seen)


def grow(model):
    host = server(model, length=2048)
    answer(host, "Once upon a time", 8)
    before = counters()
    answer(host, "Once upon a time there was", 900)
    after = counters()
    check("a long answer", after["runs"] - before["runs"] >= 300, after)
    check("growing builds nothing", after["optimizes"] - before["optimizes"] <= 1, (before, after))
    check("nor does anything fall back", after["fallbacks"] == 0, after)


PROMPTS = ["Once upon a time there was a king who", "The capital of France is", "In the beginning",
           "def fibonacci(n):\n", "Water is made of", "1 2 3 4 5 6", "List three colours:", "My"]


def together(model):
    host = server(model, length=512, parallel=4)
    lengths = [24 + 7 * i for i in range(len(PROMPTS))]
    alone = [answer(host, prompt, n)["text"] for prompt, n in zip(PROMPTS, lengths)]
    found = [None] * len(PROMPTS)

    def ask(first):
        for i in range(first, len(PROMPTS), 4):
            found[i] = answer(host, PROMPTS[i], lengths[i])["text"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for prompt, one, other in zip(PROMPTS, alone, found):
        check(f"together as alone: {prompt!r}", one == other, (one, other))
    seen = counters()
    check("nothing falls back", seen["fallbacks"] == 0 and seen["rebuilds"] == 0, seen)
    check("a plan for each shape", seen["optimizes"] <= seen["shapes"], seen)


def contexts(model):
    hosts = [server(model), server(model)]
    alone = [answer(hosts[0], prompt, 40)["text"] for prompt in PROMPTS]
    found = [None] * 2

    def ask(i):
        found[i] = [answer(hosts[i], prompt, 40)["text"] for prompt in PROMPTS]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for texts in found:
        check("beside another context as alone", texts == alone, (texts, alone))
    seen = counters()
    check("two contexts share plans", seen["fallbacks"] == seen["rebuilds"] == 0, seen)
    check("a plan for each shape", seen["optimizes"] <= seen["shapes"], seen)


def complete(host, prompt, n):
    """n tokens after the prompt; what an earlier request has left in the cache is reused."""
    result = host.handle_completions({"prompt": prompt, "n_predict": n, "temperature": 0,
                                      "ignore_eos": True})
    if isinstance(result, (str, bytes)):
        result = json.loads(result)
    return result["choices"][0]["text"], result["usage"]["completion_tokens"]


def chat(model, length, shifts):
    host = server(model, length=512 if shifts else length + 512, parallel=4, ctx_shift=shifts,
                  swa_full=shifts, cache_ram_mib=0, verbosity=4)
    before, is_over, sizes = counters(), threading.Event(), []

    def visit(number):
        while not is_over.is_set():
            complete(host, PROMPTS[number % len(PROMPTS)], 5 + 11 * (number % 7))
            number += 3

    def talk():
        text, n_done = "User: Tell me a long story.\nAssistant:", 0
        while n_done < length:
            answered, n = complete(host, text, length if shifts else min(length - n_done, 150))
            text += answered + "\nUser: And then?\nAssistant:"
            n_done += n
            sizes.append(n)

    visitors = [threading.Thread(target=visit, args=(number,)) for number in range(3)]
    for thread in visitors:
        thread.start()
    talk()
    is_over.set()
    for thread in visitors:
        thread.join()
    after = counters()
    print(f"chat of {sum(sizes)} tokens in {len(sizes)} answers: {counters_text()}")
    check("a chat", sum(sizes) >= length, sizes)
    check("graphs", after["graphs"] - before["graphs"] >= length, (before, after))
    check("a plan for each shape", after["optimizes"] <= after["shapes"], after)
    check("no plan is built twice", after["rebuilds"] == 0, after)
    check("no graph falls back", after["fallbacks"] == 0, after)
    # DUP is a part of the embedding, which is the host's.
    check("only the shift of keys is the host's",
          declined() <= {"DUP", "ROPE"} and ("ROPE" in declined()) == shifts, declined())


def main():
    what, *rest = sys.argv[1:]
    if what == "devices":
        print(*devices())
        return
    if what == "two":
        print(devices())
        other = ctypes.CDLL(rest[0])
        other.ggml_backend_load_all()
        other.ggml_backend_dev_by_name.restype = ctypes.c_void_p
        print(int(other.ggml_backend_dev_by_name(b"PAWL0") is not None))
        return
    if what == "answer":
        devices()
        print(answer(server(rest[0]), "Once upon a time", 4)["text"])
        return
    check("the device is there", "PAWL0" in devices())
    if what == "golden":
        golden(*rest)
    elif what == "grow":
        grow(rest[0])
    elif what == "contexts":
        contexts(rest[0])
    elif what == "chat":
        chat(rest[0], int(rest[1]), rest[2] == "shift")
    else:
        together(rest[0])
    end()


if __name__ == "__main__":
    main()
