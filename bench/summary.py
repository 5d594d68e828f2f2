"""Medians, ratios and shares of bandwidth out of what bench/compare.py measured."""

import collections
import statistics

# way: the fastest one; sure: at least half of the rounds were undisturbed; more: medians of what
# else the engine tells.
Cell = collections.namedtuple("Cell", "tps way sure more")
# What follows from cells and bandwidths; sure: all of them are.
Figure = collections.namedtuple("Figure", "value sure")


def median(samples, name):
    """Over the undisturbed samples; over all of them when there is none."""
    return statistics.median([sample[name] for sample in samples if sample["clean"]]
                             or [sample[name] for sample in samples])


def is_sure(samples):
    return 2 * sum(sample["clean"] for sample in samples) >= len(samples)


def quotient(a, b):
    """Of the speeds of two cells; None where one was not measured."""
    return Figure(a.tps / b.tps, a.sure and b.sure) if a and b else None


def is_pawl(engine):
    return engine.startswith("pawl ")


class Summary:
    """Of the data of one run."""

    def __init__(self, data):
        self.data = data
        self.engines = list(data["versions"])
        self.files = list(dict.fromkeys(sample["file"] for sample in data["samples"]))
        groups = collections.defaultdict(lambda: collections.defaultdict(list))
        for sample in data["samples"]:
            key = tuple(sample[name] for name in ("kind", "file", "threads", "n", "engine"))
            groups[key][sample["way"]].append(sample)
        self.cells = {key: self.best(ways) for key, ways in groups.items()}

    @staticmethod
    def best(ways):
        way = max(ways, key=lambda name: median(ways[name], "tps"))
        samples = ways[way]
        more = {name: median(samples, name)
                for name in ("host_us", "attention_us", "weight_bytes", "kv_bytes")
                if name in samples[0]}
        return Cell(median(samples, "tps"), way, is_sure(samples), more)

    def cases(self, kind):
        """[(file, threads, n)...] in the order of files."""
        found = {key[1:4] for key in self.cells if key[0] == kind}
        return sorted(found, key=lambda case: (self.files.index(case[0]), *case[1:]))

    def engines_of(self, kind):
        return [engine for engine in self.engines
                if any(key[0] == kind and key[4] == engine for key in self.cells)]

    def cell(self, kind, case, engine):
        return self.cells.get((kind, *case, engine))

    def ratio(self, kind, case, pawl, peer):
        """None where one was not measured."""
        return quotient(self.cell(kind, case, pawl), self.cell(kind, case, peer))

    def bandwidth(self, file, threads):
        """GB/s that so many threads read of as much memory."""
        found = [row for row in self.data["bandwidth"]
                 if (row["file"], row["threads"]) == (file, threads)]
        return Figure(median(found, "gbs"), is_sure(found))

    def decode_gbs(self, case, engine):
        """GB/s of weights, keys and values that decoding reads."""
        cell = self.cell("decode", case, engine)
        return Figure(1e-9 * cell.tps * (cell.more["weight_bytes"] + cell.more["kv_bytes"]),
                      cell.sure)

    def read_share(self, case, engine):
        """Of the bandwidth of as many threads."""
        gbs, most = self.decode_gbs(case, engine), self.bandwidth(*case[:2])
        return Figure(gbs.value / most.value, gbs.sure and most.sure)

    def attention_share(self, case, engine):
        """
        Time that steps of attention take, in multiples of what reading the keys and values takes at
        full bandwidth; None on the smallest depth, where there is hardly anything to read.
        """
        least = min(n for kind, f, t, n, _ in self.cells if (kind, f, t) == ("decode", *case[:2]))
        cell, most = self.cell("decode", case, engine), self.bandwidth(*case[:2])
        if case[2] == least:
            return None
        return Figure(1e3 * cell.more["attention_us"] * most.value / cell.more["kv_bytes"],
                      cell.sure and most.sure)

    def is_sure(self):
        """Whether no figure is marked."""
        return all(cell.sure for cell in self.cells.values()) and all(
            self.bandwidth(row["file"], row["threads"]).sure for row in self.data["bandwidth"])
