"""
Text through the command line: `pawl tokenize` and `detokenize` on every tokenizer case, and
`pawl run --temp 0`, which must go on as the reference does up to the first margin below 0.1.
"""
import re
import tempfile

from golden import *

MARGIN = 0.1
N_CHATS = {"smollm2-135m": 2, "gemma3-270m": 0}


def answers(case, name):
    """The ids that may come out: llama.cpp's, and those of a second tokenizer that differ."""
    second = case.get("second_" + name)
    return [case[name]] if second is None else [case[name], second]


def check_case(checks, case):
    text = bytes.fromhex(case["hex"])
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as e:
        status, out, said = pawl("tokenize", MODEL, text=text)
        checks.that(f"{case['name']}: refused at byte {e.start}",
                    status == 1 and not out and said.count("\n") == 1 and
                    re.search(rf"\bbyte {e.start}\b", said), (status, out, said))
        return
    status, plain, said = pawl("tokenize", MODEL, "--no-special", "--no-bos", text=text)
    checks.that(f"{case['name']}: ids", status == 0 and json.loads(plain) in answers(case, "ids"),
                (status, plain, said))
    if case["kind"] == "special" or case["ids"] != case["ids_parse_special"]:
        status, out, said = pawl("tokenize", MODEL, "--no-bos", text=text)
        checks.that(f"{case['name']}: ids with special tokens",
                    status == 0 and json.loads(out) in answers(case, "ids_parse_special"),
                    (status, out, said))
    if case["round_trip"]:
        status, out, said = pawl("detokenize", MODEL, text=plain)
        checks.that(f"{case['name']}: text of the ids", status == 0 and out == text, (out, said))


def generate(case, *prompt):
    """Prompt and generated tokens of `pawl run`, as the figures have them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        status, _, said = pawl("run", MODEL, *prompt, "-n", len(case["greedy"]["tokens"]),
                               "--temp", 0, "--ignore-end", "--stats-json", path)
        if status:
            sys.exit(f"pawl run: status {status}: {said}")
        with open(path, encoding="utf-8") as f:
            stats = json.load(f)
    return stats["prompt_tokens"], stats["tokens"]


def check_run(checks, case, *prompt):
    greedy = case["greedy"]
    n_prompt, tokens = generate(case, *prompt)
    n_sure = next((k for k, m in enumerate(greedy["margin"]) if m < MARGIN), len(tokens))
    n_same = next((k for k, pair in enumerate(zip(tokens, greedy["tokens"]))
                   if pair[0] != pair[1]), len(tokens))
    checks.that(f"run: {case['name']}: tokens of the prompt", n_prompt == len(case["tokens"]),
                n_prompt)
    checks.that(f"run: {case['name']}: number of tokens", len(tokens) == len(greedy["tokens"]),
                len(tokens))
    checks.that(f"run: {case['name']}: {n_sure} tokens of the reference", n_same >= n_sure, n_same)
    return n_same, n_sure


if __name__ == "__main__":
    checks = Checks()
    tokenizer = read_json(f"tokenizer-{GOLDEN.split('-')[0]}.json")
    status, out, said = pawl("tokenize", MODEL)
    checks.that("what goes before a text", status == 0 and
                json.loads(out) == tokenizer["add_special_puts_first"], (status, out, said))
    for case in tokenizer["cases"]:
        check_case(checks, case)
    same = [check_run(checks, case, "--raw", "-p", case["text"]) for case in cases()
            if case["add_special"]]
    print("run: steps with the reference's tokens, and how many had to be:", same)
    message = re.compile(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", re.S)
    chats = [(case, message.findall(case["text"])) for case in cases()]
    chats = [(case, said[0]) for case, said in chats if len(said) == 1]
    checks.that("there are chats of one message", len(chats) == N_CHATS[GOLDEN], len(chats))
    for case, said in chats:
        check_run(checks, case, "-p", said)
    checks.end()
