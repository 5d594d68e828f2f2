#!/usr/bin/env python3
"""
report.py JSON...: tables in Markdown of what bench/compare.py wrote.  With --update they replace
those of the same files in a document and leave its others, and --svg draws tokens/s over depth.
"""

import json

import plot
from checks import Parser, can_write, finish, is_file, refuse, write_text
from summary import Figure, Summary, is_pawl, quotient

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADING = "### "
UNSURE = "~"
KEYS = {"machine", "date", "commit", "versions", "rounds", "refused", "bandwidth", "samples"}


def write_json(path, data):
    write_text(path, json.dumps(data, indent=1) + "\n")


# What values of other kinds than write_json() writes lead to.
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def read_json(path):
    """What write_json() wrote for bench/compare.py."""
    is_file(path)
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (RecursionError, ValueError):
        refuse("%s: no JSON" % path)
    if not isinstance(data, dict) or KEYS - set(data):
        refuse("%s: not of bench/compare.py" % path)
    if not data["samples"]:
        refuse("%s: nothing was measured" % path)
    return data


def markdown(head, rows):
    widths = [max(len(line[i]) for line in [head] + rows) for i in range(len(head))]
    lines = [head, ["-" * (width - 1) + ":" for width in widths]] + rows
    return "\n".join("| " + " | ".join(word.rjust(width) for word, width in zip(line, widths))
                     + " |" for line in lines)


def marked(form, figure):
    """The figure in that form, with a mark unless it is sure; "-" for None."""
    return "-" if figure is None else ("" if figure.sure else UNSURE) + form % figure.value


def speed(cell):
    return marked("%.1f" if cell and cell.tps < 1000 else "%.0f",
                  cell and Figure(cell.tps, cell.sure))


def times(ratio):
    return marked("%.2f", ratio)


def case_words(summary, case):
    file, threads, n = case
    return ([file] if len(summary.files) > 1 else []) + [str(threads), str(n)]


def case_head(summary, name):
    return (["file"] if len(summary.files) > 1 else []) + ["threads", name]


def speeds_table(summary, kind, name, more_head=(), more=lambda case: []):
    """Tokens/s of every engine and the ratios; "" when nothing of that kind was measured."""
    cases = summary.cases(kind)
    if not cases:
        return ""
    engines = summary.engines_of(kind)
    pairs = [(pawl, peer) for pawl in engines for peer in engines
             if is_pawl(pawl) and not is_pawl(peer)]
    head = (case_head(summary, name) + engines
            + ["%s / %s" % (pawl.split()[1], peer) for pawl, peer in pairs])
    rows = [case_words(summary, case)
            + [speed(summary.cell(kind, case, engine)) for engine in engines]
            + [times(summary.ratio(kind, case, *pair)) for pair in pairs]
            + more(case) for case in cases]
    return markdown(head + list(more_head), rows)


def decode_more(summary, case):
    engine = summary.engines[0]
    cell, share = summary.cell("decode", case, engine), summary.read_share(case, engine)
    return [marked("%.1f", summary.decode_gbs(case, engine)),
            marked("%.0f %%", share._replace(value=100 * share.value)),
            times(summary.attention_share(case, engine)),
            marked("%.1f", Figure(cell.more["host_us"], cell.sure))]


def decode_table(summary):
    return speeds_table(summary, "decode", "depth", ["GB/s", "of read", "attention", "host us"],
                        lambda case: decode_more(summary, case))


def of_single(summary, case, engine):
    """Speed of a batch in multiples of one sequence's."""
    return times(quotient(summary.cell("batch", case, engine),
                          summary.cell("batch", (*case[:2], 1), engine)))


def batch_table(summary):
    engines = summary.engines_of("batch")
    return speeds_table(summary, "batch", "sequences", [engine + " / its 1" for engine in engines],
                        lambda case: [of_single(summary, case, engine) for engine in engines])


def busy_table(summary):
    rows = []
    for file, threads, depth in summary.cases("busy"):
        for engine in summary.engines:
            alone = summary.cell("decode", (file, 1, depth), engine)
            beside = summary.cell("busy", (file, threads, depth), engine)
            if alone and beside:
                rows.append([engine, str(threads), speed(alone), speed(beside),
                             times(quotient(beside, alone))])
    return markdown(["engine", "threads", "1 thread alone", "beside a busy process", "ratio"],
                    rows) if rows else ""


def conditions(data):
    machine = data["machine"]
    rounds = "medians of %d rounds" % data["rounds"] if data["rounds"] > 1 else "one round"
    return ("%s, %d CPUs, %s; %s, commit %s, %s." %
            (machine["cpu"], machine["cpus"], machine["system"], data["date"], data["commit"],
             rounds))


def remarks(summary):
    lines = []
    for file in summary.files:
        read = [marked("%.1f GB/s", summary.bandwidth(file, threads)) + " with %d" % threads
                for threads in sorted({row["threads"] for row in summary.data["bandwidth"]})]
        streamed = max((cell.more["weight_bytes"] for key, cell in summary.cells.items()
                        if key[1] == file and "weight_bytes" in cell.more), default=0)
        lines.append("%s: %.1f MB of weights a token; threads read %s." %
                     (file, 1e-6 * streamed, ", ".join(read)))
    lines += ["%s: refused by OpenVINO: %s" % row for row in summary.data["refused"].items()]
    if not summary.is_sure():
        lines.append("%s: others used the machine in more than half of the rounds of what it "
                     "follows from." % UNSURE)
    return "\n".join("- " + line for line in lines)


def sections(data):
    summary = Summary(data)
    parts = [("Decoded tokens/s", decode_table(summary)),
             ("Tokens/s of prompts", speeds_table(summary, "prompt", "tokens")),
             ("Tokens/s of all sequences that are decoded together", batch_table(summary)),
             ("Decoded tokens/s beside a process that computes without end", busy_table(summary))]
    versions = "Versions: " + "; ".join(dict.fromkeys(data["versions"].values())) + "."
    return [conditions(data), remarks(summary)] + [title + ":\n\n" + table
                                                  for title, table in parts if table] + [versions]


def titled(runs):
    """{heading: text with it} of the data of some runs."""
    parts = {}
    for data in runs:
        names = list(dict.fromkeys(sample["file"] for sample in data["samples"]))
        heading = HEADING + ", ".join(names)
        parts[heading] = "\n\n".join([heading] + sections(data))
    return parts


def text(runs):
    """Of the data of some runs."""
    return "\n\n".join(titled(runs).values())


def least_ratio(data):
    """Of decoding and prompts, beside any peer; None when there is none."""
    summary = Summary(data)
    ratios = [summary.ratio(kind, case, pawl, peer) for kind in ("decode", "prompt")
              for case in summary.cases(kind) for pawl in summary.engines if is_pawl(pawl)
              for peer in summary.engines if not is_pawl(peer)]
    return min((ratio.value for ratio in ratios if ratio is not None), default=None)


def update(path, parts):
    """Puts the parts in the place of those with the same headings; new ones come last."""
    is_file(path)
    with open(path, encoding="utf-8") as document:
        before, begin, rest = document.read().partition(BEGIN)
    figures, end, after = rest.partition(END)
    if not begin or not end:
        refuse("%s: no place for figures: %s, %s" % (path, BEGIN, END))
    kept = [HEADING + part.strip() for part in ("\n" + figures).split("\n" + HEADING)[1:]]
    parts = {**{part.split("\n")[0]: part for part in kept}, **parts}
    write_text(path, before + BEGIN + "\n\n" + "\n\n".join(parts.values()) + "\n\n" + END + after)


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("json", nargs="+")
    parser.add_argument("--update", metavar="DOCUMENT", help="put the tables into it")
    parser.add_argument("--svg", metavar="FILE", help="tokens/s over depth, of the first file")
    options = parser.parse_args()
    for path in options.update, options.svg:
        if path:
            can_write(path)
    runs = [read_json(path) for path in options.json]
    try:
        tables = titled(runs) if options.update else text(runs)
        picture = plot.depths(Summary(runs[0])) if options.svg else None
    except DAMAGE as error:
        refuse("%s: not as bench/compare.py writes it (%s: %s)" %
               (", ".join(options.json), type(error).__name__, error))
    if options.update:
        update(options.update, tables)
    else:
        print(tables)
    if options.svg:
        write_text(options.svg, picture)


if __name__ == "__main__":
    finish(main)
