"""
The server of llama.cpp with libggml-pawl.so: four clients over the loopback address, minutes long.

    llama_server.py MODEL MINUTES

Every answer is that of one client alone.  Between those that are compared come prompts of ever new
lengths: memory stays within a bound, as plans do not know lengths, and grows with nothing but plans.
The last line counts checks, as model-test.sh reads it.
"""
import http.client
import json
import sys
import threading
import time
from urllib.parse import urlsplit

from llama_host import check, counters, devices, end, server

CLIENTS = 4
MOST_GROWTH = 8 << 20  # bytes, while no plan is built: less than two plans
MOST_PLANS = 48  # 4 numbers of streams, 4 of tokens, 3 of rows that are asked for
MOST_PLAN_BYTES = 8 << 20  # and memory grow with each, what compiles it and scratch memory included
SUBJECTS = ["the sea", "an old clock", "two brothers", "a winter road", "the first train", "bread"]
TEXT = " ".join(f"Line {i} says that {7 * i} is seven times {i}." for i in range(1, 60))


def requests():
    """Chats and completions, short and long, of which some begin as others do."""
    for i, subject in enumerate(SUBJECTS):
        yield "/v1/chat/completions", {
            "messages": [{"role": "user", "content": f"Tell me about {subject}."}],
            "max_tokens": 16 + 9 * i}
        yield "/completion", {
            "prompt": f"A story about {subject}: once there", "n_predict": 24 + 5 * i}
        yield "/completion", {"prompt": TEXT[:250 * (i + 1)], "n_predict": 8 + i}


def fresh(number):
    """A prompt of another length than those before."""
    return "/completion", {"prompt": TEXT[number % 7:20 + 13 * number % 1500], "n_predict": 4}


class Client:
    def __init__(self, address):
        self.connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)

    def ask(self, request):
        path, body = request
        self.connection.request("POST", path, json.dumps({**body, "temperature": 0}),
                                {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        result = json.loads(response.read())
        if response.status != 200:
            raise ValueError(result)
        if "content" in result:
            return result["content"]
        return result["choices"][0]["message"]["content"]


def memory():
    """Bytes that are in memory and of no file."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def growth(samples):
    """
    Of the second half over the first of the longest time in which no plan was built; its end is the
    next plan's, which is counted when it is complete.
    """
    plans = [n for n, _ in samples]
    most = max(plans, key=plans.count)
    sizes = [size for n, size in samples if n == most]
    sizes = sizes[:-2] if len(sizes) > 4 else sizes
    return max(sizes[len(sizes) // 2:]) - max(sizes[:len(sizes) // 2 + 1])


def serve(model, seconds):
    host = server(model, length=1024, parallel=CLIENTS, cache_ram_mib=0, n_threads_http=CLIENTS)
    work = list(requests())
    alone = [Client(host.listening_address).ask(request) for request in work]
    check("answers", all(alone), alone)
    errors, different, samples, n_answers = [], [], [], [0] * CLIENTS
    at_first, plans_at_first = memory(), counters()["optimizes"]
    stop = time.monotonic() + seconds

    def run(number):
        client = Client(host.listening_address)
        at = number
        while time.monotonic() < stop and not errors:
            i = at % len(work)
            at += 1 + number * 2
            try:
                found = client.ask(work[i])
                if n_answers[number] % 2:
                    client.ask(fresh(number + CLIENTS * n_answers[number]))
            except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
                errors.append(repr(error))
                return
            n_answers[number] += 1
            if found != alone[i]:
                different.append((i, alone[i], found))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        samples.append((counters()["optimizes"], memory()))
        time.sleep(min(2, seconds / 30))
    for thread in threads:
        thread.join()
    print(f"server: {sum(n_answers)} answers in {seconds:.0f} s, plans and MiB at each tenth:",
          *(f"{n} {size / 2**20:.1f}," for n, size in samples[::max(1, len(samples) // 10)]))
    check("no error", not errors, errors)
    check("each client is served", min(n_answers) >= 2, n_answers)
    check("together as alone", not different, (len(different), different[:1]))
    check("memory does not grow", growth(samples) <= MOST_GROWTH, (growth(samples), samples))
    seen = counters()
    most = at_first + MOST_PLAN_BYTES * (seen["optimizes"] - plans_at_first)
    check("plans do not know lengths", seen["optimizes"] <= MOST_PLANS, seen)
    check("memory has a bound", max(size for _, size in samples) <= most, (most, samples))
    check("all plans are kept", seen["plans"] == seen["optimizes"] and not seen["evicted"], seen)
    print("counters:", seen)
    check("nothing falls back", seen["fallbacks"] == 0 and seen["rebuilds"] == 0, seen)
    check("a plan for each shape", seen["optimizes"] <= seen["shapes"], seen)


def main():
    check("the device is there", "PAWL0" in devices())
    serve(sys.argv[1], 60 * float(sys.argv[2]))
    end()


main()
