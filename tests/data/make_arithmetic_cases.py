#!/usr/bin/env python3
"""Writes tests/arithmetic_cases.c: docs/arithmetic.md carried out in exact rational numbers.

An implementation of the document that shares nothing with ir/: every operation is done on
fractions and then rounded to f32 (24 bits, ties to even; below 2^-126 after rounding: 0).
A fraction has no negative zero: the sign of a zero is not covered.

    make_arithmetic_cases.py >tests/arithmetic_cases.c
"""
import struct
from fractions import Fraction
from math import isqrt

LANES, CHUNK = 16, 128
LEAST = Fraction(1, 2**126)


# ---------------------------------------------------------------- f32 by hand
def to_even(x):
    """A fraction to an integer."""
    floor = x.numerator // x.denominator
    rest = x - floor
    return floor + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor & 1))


def rn(x):
    x = Fraction(x)
    if x == 0:
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > abs(x):
        exponent -= 1
    unit = Fraction(2) ** (exponent - 23)
    x = to_even(x / unit) * unit
    assert abs(x) < 2**128
    return x if abs(x) >= LEAST else Fraction(0)


def fma(x, y, z):
    return rn(x * y + z)


def root(x):
    """sqrt(x) to f32; two spare digits and a sticky one make the rounding right."""
    scale = 60
    while (x * 4**scale).denominator != 1 or x * 4**scale < 2**60:
        scale += 1
    n = int(x * 4**scale)
    s = isqrt(n)
    return rn(Fraction(2 * s + (s * s != n), 2 * 2**scale))


def from_hex(text):
    return Fraction(float.fromhex(text))


def f32_bits(x):
    return struct.unpack("<I", struct.pack("<f", float(x)))[0]


# ---------------------------------------------------------------- functions
LOG2E, LN2_HI, LN2_LO = map(from_hex, ("0x1.715476p+0", "0x1.62e430p-1", "-0x1.05c610p-29"))
C = [from_hex(c) for c in ("0x1.6a23d0p-10", "0x1.123a20p-7", "0x1.5558f2p-5", "0x1.555492p-3",
                           "0x1.fffffcp-2")] + [Fraction(1), Fraction(1)]
CUBIC, SLOPE = from_hex("0x1.6e4e26p-5"), from_hex("0x1.988454p-1")


def exp(x):
    if x < -60:
        return Fraction(0)
    x = min(Fraction(88), x)
    n = to_even(rn(x * LOG2E))
    r = fma(-n, LN2_HI, x)
    r = fma(-n, LN2_LO, r)
    p = C[0]
    for c in C[1:]:
        p = fma(p, r, c)
    return p * Fraction(2) ** n


def sigmoid(x):
    return rn(1 / rn(1 + exp(-x)))


def silu(x):
    return rn(x / rn(1 + exp(-x)))


def tanh(x):
    return rn(1 - rn(2 / rn(exp(rn(x + x)) + 1)))


def gelu_tanh(x):
    inner = rn(SLOPE * fma(CUBIC, rn(rn(x * x) * x), x))
    return rn(rn(x / 2) * rn(1 + tanh(inner)))


# ---------------------------------------------------------------- rows
def tree(lanes, combine):
    lanes = list(lanes)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [combine(lanes[i], lanes[i + half]) for i in range(half)]
    return lanes[0]


def add(x, y):
    return rn(x + y)


def row_sum(x, first=0):
    lanes = [Fraction(0)] * LANES
    for i, v in enumerate(x):
        lane = (first + i) % LANES
        lanes[lane] = add(lanes[lane], v)
    return tree(lanes, add)


def row_sum_squares(x):
    lanes = [Fraction(0)] * LANES
    for i, v in enumerate(x):
        lanes[i % LANES] = fma(v, v, lanes[i % LANES])
    return tree(lanes, add)


def rms_norm(x, w, eps):
    scale = rn(1 / root(add(rn(row_sum_squares(x) / len(x)), eps)))
    return [rn(rn(v * scale) * u) for v, u in zip(x, w)]


def layer_norm(x, w, b, eps):
    mean = rn(row_sum(x) / len(x))
    t = [rn(v - mean) for v in x]
    scale = rn(1 / root(add(rn(row_sum_squares(t) / len(x)), eps)))
    return [rn(rn(rn(v * scale) * u) + a) for v, u, a in zip(t, w, b)]


def softmax(x):
    most = max(x)
    e = [exp(rn(v - most)) for v in x]
    total = row_sum(e)
    return [rn(v / total) for v in e]


def attend(scores, values, first):
    """scores[i], values[i]: position first + i, all visible."""
    width = len(values[0])
    total = None
    at = 0
    while at < len(scores):
        end = min(len(scores), (first + at) // CHUNK * CHUNK + CHUNK - first)
        most = max(scores[at:end])
        p = [exp(rn(s - most)) for s in scores[at:end]]
        o = [Fraction(0)] * width
        for weight, value in zip(p, values[at:end]):
            o = [fma(weight, v, a) for v, a in zip(value, o)]
        part = most, row_sum(p, first + at), o
        if total is None:
            total = part
        else:
            most = max(total[0], part[0])
            a, b = exp(rn(total[0] - most)), exp(rn(part[0] - most))
            total = (most, fma(part[1], b, rn(total[1] * a)),
                     [fma(y, b, rn(x * a)) for x, y in zip(total[2], part[2])])
        at = end
    return [rn(o / total[1]) for o in total[2]]


# ---------------------------------------------------------------- blocks
def quantize(x, most):
    """32 values to (d, integers)."""
    largest = max(abs(v) for v in x)
    inverse = rn(most / largest)
    return rn(largest / most), [to_even(rn(v * inverse)) for v in x]


def f16(b):
    return Fraction(struct.unpack("<e", b)[0])


def nibble(b, i, width):
    """Element i of 2 * width: low halves of width bytes, then the high halves."""
    return b[i] & 15 if i < width else b[i - width] >> 4


def bit(b, i):
    return b[i // 8] >> i % 8 & 1


def six_bits(b, g):
    """Scale and least number of group g, out of twelve bytes."""
    if g < 4:
        return b[g] & 63, b[g + 4] & 63
    return b[g + 4] & 15 | b[g - 4] >> 6 << 4, b[g + 4] >> 4 | b[g] >> 6 << 4


def signed(byte):
    return byte - 256 if byte > 127 else byte


def groups(kind, b):
    """A block as a list of (d, offset or None, integers)."""
    if kind == "Q4_0":
        return [(f16(b[:2]), None, [nibble(b[2:], i, 16) - 8 for i in range(32)])]
    if kind == "Q4_1":
        return [(f16(b[:2]), f16(b[2:4]), [nibble(b[4:], i, 16) for i in range(32)])]
    if kind == "Q5_0":
        return [(f16(b[:2]), None,
                 [nibble(b[6:], i, 16) + 16 * bit(b[2:6], i) - 16 for i in range(32)])]
    if kind == "Q5_1":
        return [(f16(b[:2]), f16(b[2:4]),
                 [nibble(b[8:], i, 16) + 16 * bit(b[4:8], i) for i in range(32)])]
    if kind == "Q8_0":
        return [(f16(b[:2]), None, [signed(v) for v in b[2:]])]
    if kind == "Q6_K":
        out = []
        for g in range(16):
            q = []
            for e in range(16 * g, 16 * g + 16):
                half, part, i = e // 128, e % 128 // 32, e % 32
                low = b[64 * half + 32 * (part % 2) + i]
                low = low >> 4 if part >= 2 else low & 15
                q.append(low + 16 * (b[128 + 32 * half + i] >> 2 * part & 3) - 32)
            out.append((f16(b[208:210]) * signed(b[192 + g]), None, q))
        return out
    out = []
    for g in range(8):
        scale, least = six_bits(b[4:16], g)
        plane = b[16 if kind == "Q4_K" else 48:]
        q = [nibble(plane[32 * (g // 2):], i + 32 * (g % 2), 32) for i in range(32)]
        if kind == "Q5_K":
            q = [v + 16 * (b[16 + i] >> g & 1) for i, v in enumerate(q)]
        out.append((f16(b[:2]) * scale, -f16(b[2:4]) * least, q))
    return out


def dot(row, x, most):
    """row: groups of the whole row; x: as many values."""
    acc, at = Fraction(0), 0
    for d, offset, w in row:
        dx, q = quantize(x[at // 32 * 32:at // 32 * 32 + 32], most)
        q = q[at % 32:at % 32 + len(w)]
        acc = fma(rn(d * dx), rn(sum(a * b for a, b in zip(w, q))), acc)
        if offset is not None:
            acc = fma(offset, rn(dx * sum(q)), acc)
        at += len(w)
    return acc


# ---------------------------------------------------------------- cases
class Values:
    """The numbers of pawl_case_value."""

    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return Fraction((self.state >> 8) - 2**23, 2**21)

    def row(self, n):
        return [self.next() for _ in range(n)]

    def block(self, kind, size, subnormal):
        """Random bytes; the f16 scales are about 0.2, or subnormal."""
        b = bytearray()
        while len(b) < size:
            b += struct.pack("<I", f32_bits(self.next()))[:3]
        b = b[:size]
        for at in {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
                   "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}[kind]:
            b[at + 1] = b[at + 1] & 0x83 if subnormal else b[at + 1] & 0x87 | 0x30
        return bytes(b)


def wrap(items, indent="\t"):
    lines, line = [], indent
    for item in items:
        if len(line.expandtabs(8)) + len(item) + 1 > 98:
            lines.append(line.rstrip())
            line = indent
        line += item + ", "
    return "\n".join(lines + [line.rstrip()])


def array(kind, name, items):
    print(f"static const {kind} {name}[] = {{\n{wrap(items)}\n}};\n")


def hexes(values):
    return [f"0x{f32_bits(v):08x}" for v in values]


def print_blocks():
    kinds = {"Q4_0": (18, 32), "Q4_1": (20, 32), "Q5_0": (22, 32), "Q5_1": (24, 32),
             "Q8_0": (34, 32), "Q4_K": (144, 256), "Q5_K": (176, 256), "Q6_K": (210, 256)}
    rows = []
    for number, (kind, (size, count)) in enumerate(kinds.items()):
        numbers = Values(number + 1)
        blocks = [numbers.block(kind, size, i == 1) for i in range(6 if count == 32 else 2)]
        row = [g for b in blocks for g in groups(kind, b)]
        values = [d * v + (offset or 0) for d, offset, q in row for v in q]
        x = Values(100 + number).row(len(values))
        name = kind.lower()
        array("uint8_t", name + "_bytes", [f"0x{v:02x}" for b in blocks for v in b])
        array("int64_t", name + "_values", [str(int(v * 2**24)) for v in values])
        assert all((v * 2**24).denominator == 1 for v in values)
        a16, a8 = (f32_bits(dot(row, x, most)) for most in (16256, 127))
        rows.append(f"\t{{PAWL_DTYPE_{kind}, {len(values)}, {name}_bytes, {name}_values, "
                    f"{100 + number}, 0x{a16:08x}, 0x{a8:08x}}},")
    print("const struct pawl_block_case pawl_block_cases[PAWL_N_BLOCK_CASES] = {")
    print("\n".join(rows) + "\n};\n")


def print_functions():
    numbers = Values(7)
    xs = [rn(numbers.next() * scale) for scale in (1, 1, 3, 24) for _ in range(16)]
    xs += [Fraction(v) for v in (0, 88, -60, 20, Fraction(1, 3 * 2**20))]
    xs = [rn(x) for x in xs]
    print("const struct pawl_function_case pawl_function_cases[PAWL_N_FUNCTION_CASES] = {")
    for x in xs:
        bits = ", ".join(hexes([x, exp(x), sigmoid(x), silu(x), tanh(x), gelu_tanh(x)]))
        print(f"\t{{{bits}}},")
    print("};\n")


def print_fingerprint():
    numbers, mixed = Values(8), 2166136261
    for _ in range(8192):
        mixed = (mixed ^ f32_bits(exp(rn(numbers.next() * 15)))) * 16777619 % 2**32
    print(f"const uint32_t pawl_exp_fingerprint = 0x{mixed:08x};\n")


def print_rows():
    n, eps = 37, rn(Fraction(1, 10**5))
    numbers = Values(55)
    x, w, b = numbers.row(n), numbers.row(n), numbers.row(n)
    print("const struct pawl_row_case pawl_row_case = {")
    print(f"\t.sum = {hexes([row_sum(x)])[0]},")
    print(f"\t.sum_squares = {hexes([row_sum_squares(x)])[0]},")
    for name, y in (("rms_norm", rms_norm(x, w, eps)), ("layer_norm", layer_norm(x, w, b, eps)),
                    ("softmax", softmax(x))):
        print(f"\t.{name} = {{\n{wrap(hexes(y), chr(9) * 2)}\n\t}},")
    n, width, first = 300, 8, 69
    numbers = Values(77)
    scores = numbers.row(n)
    values = [numbers.row(width) for _ in range(n)]
    print(f"\t.attend = {{\n{wrap(hexes(attend(scores, values, first)), chr(9) * 2)}\n\t}},")
    print("};")


print("/* Written by tests/data/make_arithmetic_cases.py. */")
print('#include "tests/arithmetic_cases.h"\n')
print_blocks()
print_functions()
print_fingerprint()
print_rows()
