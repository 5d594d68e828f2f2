"""SmolLM2 by target cuda on the mock of a driver, the first tokens after two golden prompts: greedy
tokens are the reference's, logits within TOLERANCE of the CPU's, relative to the largest.  Sums have
another order there, and what is stored as f16 may be rounded to the other side."""
import golden

N_TOKENS = 4
TOLERANCE = 2e-4

checks = golden.Checks()
for case in golden.cases():
    if case["name"] not in ("single token", "plain story"):
        continue
    wanted = case["greedy"]["tokens"][:N_TOKENS]
    tokens = case["tokens"] + wanted[:-1]
    first = len(case["tokens"]) - 1
    cuda = golden.evaluate(tokens, "--target", "cuda", "--chunk", 1, first=first)
    cpu = golden.evaluate(tokens, "--chunk", 1, first=first)
    for i, token in enumerate(wanted):
        row = slice(i * golden.N_VOCAB, (i + 1) * golden.N_VOCAB)
        got, there = cuda[row], cpu[row]
        largest = max(map(abs, there))
        checks.that(f"{case['name']}: token {i}", max(range(len(got)), key=got.__getitem__) == token)
        checks.at_most(f"{case['name']}: logits {i}",
                       max(abs(a - b) for a, b in zip(got, there)) / largest, TOLERANCE)
checks.that("two prompts", checks.passed + checks.failed == 4 * N_TOKENS)
checks.end()
