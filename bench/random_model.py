#!/usr/bin/env python3
"""
random_model.py FILE SHAPE [LAYERS]: a GGUF file as large as a real model, with weights drawn at
random and no tokenizer, to measure speed where the model cannot be had.  Shapes are those of
SmolLM2-135M in Q4_1 (smollm2, 98 MB) and of Llama 3.2 1B in bf16 (llama-1b, 2.5 GB), LAYERS in place
of the number of layers.  The same arguments write the same bytes.  Rows of weights have a length of
about 1, so that values keep their size from layer to layer; norms are 1.
"""

import math
import random
import struct

from checks import Parser, can_write, finish, replacing, whole
from children import end_on_signals

F32, Q4_1, Q8_0, BF16 = 0, 3, 8, 30
ALIGNMENT = 32
MOST_BYTES = 1 << 24  # that are made at once

# The embedding, which is the head too, has a type of its own.
SHAPES = {
    "smollm2": dict(title="SmolLM2-135M, random weights", type=Q4_1, embedding=Q8_0, layers=30,
                    context=8192, width=576, feed_forward=1536, heads=9, kv_heads=3,
                    vocabulary=49152, base=1e5),
    "llama-1b": dict(title="Llama 3.2 1B, random weights", type=BF16, embedding=BF16, layers=16,
                     context=131072, width=2048, feed_forward=8192, heads=32, kv_heads=8,
                     vocabulary=128256, base=5e5),
}
HEAD = 64


def tensors(shape, layers):
    """(name, type, columns, rows) of each; rows 0: a vector."""
    width, ff = shape["width"], shape["feed_forward"]
    q, kv = shape["heads"] * HEAD, shape["kv_heads"] * HEAD
    yield "token_embd.weight", shape["embedding"], width, shape["vocabulary"]
    for layer in range(layers):
        for name, columns, rows in (("attn_norm", width, 0), ("attn_q", width, q),
                                    ("attn_k", width, kv), ("attn_v", width, kv),
                                    ("attn_output", q, width), ("ffn_norm", width, 0),
                                    ("ffn_gate", width, ff), ("ffn_up", width, ff),
                                    ("ffn_down", ff, width)):
            dtype = shape["type"] if rows else F32
            yield "blk.%d.%s.weight" % (layer, name), dtype, columns, rows
    yield "output_norm.weight", F32, width, 0


def n_bytes(dtype, columns, rows):
    block, size = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34), BF16: (1, 2)}[dtype]
    return columns // block * size * max(rows, 1)


def quantized(head, n_blocks, size, draw):
    data = draw(n_blocks * size)
    return b"".join([part for i in range(0, len(data), size) for part in (head, data[i:i + size])])


def weights(dtype, columns, rows, draw):
    """Of so many rows, as bytes; evenly drawn between -largest and largest but for bf16."""
    n, largest = rows * columns, math.sqrt(3 / columns)
    if dtype == Q4_1:
        return quantized(struct.pack("<ee", 2 * largest / 15, -largest), n // 32, 16, draw)
    if dtype == Q8_0:
        return quantized(struct.pack("<e", largest / 127), n // 32, 32, draw)
    # Its high byte is the sign and the exponent, without the lowest bit of that.
    exponent = round((127 - math.log2(2.4 * math.sqrt(columns))) / 2)
    data = bytearray(2 * n)
    data[0::2] = draw(n)
    data[1::2] = draw(n).translate(bytes((i & 128) | exponent for i in range(256)))
    return data


def text(words):
    return struct.pack("<Q", len(words)) + words.encode()


def header(shape, layers):
    names = {"block_count": layers, "context_length": shape["context"],
             "embedding_length": shape["width"], "feed_forward_length": shape["feed_forward"],
             "attention.head_count": shape["heads"], "attention.head_count_kv": shape["kv_heads"],
             "rope.dimension_count": HEAD, "rope.freq_base": shape["base"],
             "attention.layer_norm_rms_epsilon": 1e-5}
    values = [text(key) + struct.pack("<I", 8) + text(words) for key, words in
              (("general.architecture", "llama"), ("general.name", shape["title"]))]
    values += [text("llama." + name) + (struct.pack("<If", 6, value) if isinstance(value, float)
                                        else struct.pack("<II", 4, value))
               for name, value in names.items()]
    records, at = [], 0
    for name, dtype, columns, rows in tensors(shape, layers):
        dims = (columns, rows) if rows else (columns,)
        records.append(text(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, dtype, at))
        at += -(-n_bytes(dtype, columns, rows) // ALIGNMENT) * ALIGNMENT
    return (b"GGUF" + struct.pack("<IQQ", 3, len(records), len(values)) + b"".join(values)
            + b"".join(records))


def write(out, shape, layers):
    draw = random.Random(1).randbytes
    out.write(header(shape, layers))
    for name, dtype, columns, rows in tensors(shape, layers):
        out.write(bytes(-out.tell() % ALIGNMENT))
        if not rows:
            out.write(struct.pack("<f", 1) * columns)
        most = MOST_BYTES // n_bytes(dtype, columns, 1)
        for first in range(0, rows, most):
            out.write(weights(dtype, columns, min(most, rows - first), draw))


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("layers", nargs="?", type=whole(1, 1000))
    args = parser.parse_args()
    can_write(args.file)
    end_on_signals()
    shape = SHAPES[args.shape]
    with replacing(args.file, "wb") as out:
        write(out, shape, args.layers or shape["layers"])


if __name__ == "__main__":
    finish(main)
