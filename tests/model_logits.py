"""
The logits of `pawl eval` at the four checked positions of each golden case, and the tokens that
the reference goes on with.  Needs no package; tests/model_rows.py compares whole rows.

Limits: for a16 those of the design (mean divergence 5e-6, a logit 0.15, the reference's token
where its margin exceeds 0.1); for a8 about twice what rounding activations to 8 bits in blocks
of 32 costs in an otherwise exact evaluation; for exact mode what f32 keys and values cost.
"""
from golden import *

# Logits and normalizers of the file have four decimals: they say nothing about the rest of the
# vocabulary where it has less than this.
LEAST_REST = 1e-3


# The longest prompt that exact mode, which is slow, is tried with.
EXACT = {"smollm2-135m": 16, "gemma3-270m": 1}


def normalizer(row):
    most = max(row)
    return most + math.log(math.fsum(math.exp(x - most) for x in row))


def divergence_33(check, row):
    """Of 33 classes, each of the 32 ids and the rest: rest or not, then which of the 32."""
    total = normalizer(row)
    p = [math.exp(x - check["normalizer"]) for x in check["logits"]]
    q = [math.exp(row[i] - total) for i in check["ids"]]
    sum_p, sum_q = math.fsum(p), math.fsum(q)
    among = math.fsum(a / sum_p * math.log((a / sum_p) / (b / sum_q)) for a, b in zip(p, q))
    if 1 - sum_p < LEAST_REST:
        return among
    return (sum_p * math.log(sum_p / sum_q) + sum_p * among +
            (1 - sum_p) * math.log((1 - sum_p) / (1 - sum_q)))


class Result:
    """How far the logits of a case, from the last token of its prompt on, are from the file."""

    def __init__(self, case, logits):
        greedy, first = case["greedy"], len(case["tokens"]) - 1

        def row_of(position):
            return logits[(position - first) * N_VOCAB:(position - first + 1) * N_VOCAB]

        checked = [(check, row_of(check["position"])) for check in case["checks"]]
        self.logit = [abs(row[i] - x) for check, row in checked
                      for i, x in zip(check["ids"], check["logits"])]
        self.log_p = [row[i] - normalizer(row) - x + check["normalizer"] for check, row in
                      checked for i, x in zip(check["ids"], check["logits"])]
        self.divergence = [divergence_33(*pair) for pair in checked]
        self.steps = []  # (margin, whether the reference's token is the likeliest)
        for k, token in enumerate(greedy["tokens"]):
            row = row_of(first + k)
            self.steps.append((greedy["margin"][k], row[token] == max(row)))

    def lost(self, margin):
        return [m for m, same in self.steps if m > margin and not same]


def result(case, *options):
    first = len(case["tokens"]) - 1
    return Result(case, evaluate(forced(case), *options, first=first))


def run_all(some, *options):
    results = [(case["name"], result(case, *options)) for case in some]
    steps = [same for _, r in results for _, same in r.steps]
    print(f"{' '.join(options) or 'a16'}: {len(results)} cases,",
          f"largest logit difference {max(max(r.logit) for _, r in results):.3g},",
          f"log p {max(max(map(abs, r.log_p)) for _, r in results):.3g},",
          f"divergence of 33 classes {mean(mean(r.divergence) for _, r in results):.3g}"
          f" (of a case {max(mean(r.divergence) for _, r in results):.3g}),",
          f"same token in {sum(steps)} of {len(steps)} steps,",
          f"margins lost {[round(m, 4) for _, r in results for m in r.lost(0)]}")
    return results


def check_a16(checks, some):
    for name, r in run_all(some):
        checks.at_most(f"a16: {name}: largest logit difference", max(r.logit), 0.15)
        checks.at_most(f"a16: {name}: mean divergence of 33 classes", mean(r.divergence), 5e-6)
        checks.that(f"a16: {name}: the reference's token", not r.lost(0.1), r.lost(0.1))


def check_a8(checks, some):
    results = run_all(some, "--activations", "a8")
    for name, r in results:
        checks.at_most(f"a8: {name}: largest log p difference", max(map(abs, r.log_p)), 2.0)
        checks.at_most(f"a8: {name}: rms of log p differences", rms(r.log_p), 0.6)
        checks.at_most(f"a8: {name}: mean divergence of 33 classes", mean(r.divergence), 0.03)
        checks.that(f"a8: {name}: the reference's token", not r.lost(1.0), r.lost(1.0))
    checks.at_most("a8: mean divergence of 33 classes",
                   mean(mean(r.divergence) for _, r in results), 0.012)
    steps = [same for _, r in results for _, same in r.steps]
    checks.that("a8: the reference's token in 90 % of all steps",
                sum(steps) >= 0.9 * len(steps), f"{sum(steps)} of {len(steps)}")


def check_exact(checks, some):
    for name, r in run_all(some, "--exact"):
        checks.at_most(f"exact: {name}: largest logit difference", max(r.logit), 2e-3)
        checks.that(f"exact: {name}: the reference's token", not r.lost(0.005), r.lost(0.005))


def check_sharpness(checks, case):
    """The limits of a16 must not be met by a8."""
    r = result(case, "--activations", "a8")
    checks.that("a8 is beyond the limits of a16", mean(r.divergence) > 5e-6, mean(r.divergence))


if __name__ == "__main__":
    checks = Checks()
    all_cases = cases()
    checks.that("there are cases", len(all_cases) == N_CASES, len(all_cases))
    check_a16(checks, all_cases)
    check_a8(checks, all_cases)
    check_sharpness(checks, all_cases[0])
    check_exact(checks, [case for case in all_cases if len(case["tokens"]) <= EXACT[GOLDEN]])
    checks.end()
