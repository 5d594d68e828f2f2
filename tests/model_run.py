"""
What a generation costs, by the tool's own figures: the same number of plans and kernels for any
length, nothing allocated on the way, and no bytes bound but those of the data consts.
"""
import tempfile

from golden import *

# The id, a row of cosines and one of sines for heads of 64, the offset.
BYTES_BOUND = 4 + 2 * 64 * 4 + 8

KV_BYTES = 2 * 30 * 3 * 64 * 2  # of a position: K and V, layers, heads, width, f16
LLVM_BYTES = 80 << 20

# Plans (runtime/counters.h): the cache, one token; and with a prompt of a chunk or more the chunk.
# Of the question's 37 tokens 32 are a chunk, the plan for one token is built for the next, and four
# more are served by it, as are all but the first that are generated.
PROMPTS = [("one token", ["--raw", "-p", "The"], 1, 2, 0),
           ("a question", ["-p", "What is the capital of France?"], 37, 3, 4)]


def generate(n, *prompt):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        os.environ["PAWL_CACHE_DIR"] = folder  # no kernels there
        status, _, said = pawl("run", MODEL, *prompt, "-n", n, "--temp", 0, "--ignore-end",
                               "--stats-json", path)
        if status:
            sys.exit(f"pawl run: status {status}: {said}")
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def check_figures(checks, what, found, **wanted):
    for key, value in wanted.items():
        checks.that(f"{what}: {key}", found[key] == value, f"{found[key]}, not {value}")


def check_memory(checks, what, found, capacity):
    limit = 1.4 * os.path.getsize(MODEL) + capacity * KV_BYTES + LLVM_BYTES
    checks.at_most(f"{what}: resident bytes", found["peak_rss_bytes"], limit)
    return found["peak_rss_bytes"] / limit


def check_prompt(checks, name, prompt, n_prompt, optimizes, n_served):
    compiles = []
    for n in 8, 64, 256:
        what = f"{name}, {n} tokens"
        found = generate(n, *prompt)
        check_figures(checks, what, found, prompt_tokens=n_prompt, generated_tokens=n,
                      optimizes=optimizes, rebuilds=0, validity_checks=n_served + n - 1,
                      plan_reuses=n_served + n - 1, allocations_per_token=0,
                      bytes_bound_per_token=BYTES_BOUND)
        checks.that(f"{what}: number of ids", len(found["tokens"]) == n, len(found["tokens"]))
        share = check_memory(checks, what, found, 512)
        compiles.append(found["kernel_compiles"])
    checks.that(f"{name}: kernels compiled, whatever the length",
                compiles[0] > 0 and len(set(compiles)) == 1, compiles)
    print(f"{name}: {optimizes} optimizes, {compiles[0]} kernels,",
          f"{share:.0%} of the memory allowed")


def check_lookup(checks):
    """Guesses cost one plan more and change no token."""
    prompt = ["-p", "Write a short story about a lighthouse keeper and a whale."]
    plain, found = generate(128, *prompt), generate(128, *prompt, "--lookup")
    checks.that("lookup: tokens", found["tokens"] == plain["tokens"])
    check_figures(checks, "lookup", found, optimizes=plain["optimizes"] + 1, rebuilds=0)
    accepted, runs = found["accepted_tokens"], found["decode_runs"]
    checks.that("lookup: some guesses are right, some wrong",
                0 < accepted < found["proposed_tokens"], accepted)
    checks.that("lookup: a token a run, and the guesses that were right", runs + accepted == 127,
                (runs, accepted))
    print(f"lookup: {runs} runs for 127 tokens")


if __name__ == "__main__":
    checks = Checks()
    for prompt in PROMPTS:
        check_prompt(checks, *prompt)
    long = cases()[5]
    found = generate(8, "--raw", "-p", long["text"])
    check_figures(checks, long["name"], found, prompt_tokens=len(long["tokens"]), optimizes=3,
                  rebuilds=0, plan_reuses=found["validity_checks"])
    check_lookup(checks)
    checks.end()
