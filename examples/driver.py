#!/usr/bin/env python3
"""A host that leaves caches and steps to Pawl: it hands over a model, whose graphs it builds when they
are asked for.  The model is that of host.py, its loading and weights are taken from there.

    driver.py PATH/pawl_plugin.so [TARGET]

Lines 1 and 2: the tokens of two prompts, by a scheduler.  Line 3: counters.  A decoder must give the
same tokens, whether a text is appended token by token or as a prompt.
"""
import array
import ctypes as c
import sys

import host
from host import CAPACITY, HEAD, TOKENS, VOCAB, I, N, OUT, P, S, Struct

# The table of pawl/plugin.h from where that of host.py ends; what is not called still has its place.
TABLE = host.TABLE + [
    ("graph_add_text", P, P, S, N),
    ("model_create", P, P, P, P, OUT), ("model_release", None, P),
    ("decoder_create", P, P, P, OUT), ("decoder_release", None, P),
    ("decoder_append", P, P, P, I, OUT), ("decoder_verify", P, P, P, I, I, OUT),
    ("decoder_len", I, P), ("decoder_capacity", I, P), ("decoder_set_len", P, P, I, P),
    ("decoder_reserve", P, P, I), ("decoder_save", P, P, P, I, P, P),
    ("decoder_restore", P, P, P, N, P, I, P),
    ("pool_create", P, P, P, OUT), ("pool_release", None, P), ("pool_open", P, P, P),
    ("pool_close", P, P, c.c_uint64), ("pool_fork", P, P, c.c_uint64, P),
    ("pool_len", I, P, c.c_uint64), ("pool_set_len", P, P, c.c_uint64, I),
    ("pool_free_blocks", I, P), ("pool_append", P, P, c.c_uint64, P, I, OUT),
    ("pool_step", P, P, P, P, I, OUT), ("pool_evict", P, P, c.c_uint64, P, P),
    ("pool_restore", P, P, c.c_uint64), ("pool_keep_prefix", P, P, c.c_uint64, P, I, P),
    ("pool_use_prefix", P, P, c.c_uint64, P, I, P), ("pool_drop_prefix", P, P, c.c_uint64),
    ("scheduler_create", P, P, P, OUT), ("scheduler_release", None, P),
    ("scheduler_submit", P, P, P, P), ("scheduler_cancel", P, P, c.c_uint64),
    ("scheduler_evict", P, P, c.c_uint64), ("scheduler_restore", P, P, c.c_uint64),
    ("scheduler_step", P, P), ("scheduler_has_work", c.c_int, P),
    ("scheduler_report", P, P, c.c_uint64, P),
]


class StepRequest(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("n_tokens", I), ("capacity", I), ("logits", I),
                ("k_type", S), ("v_type", S), ("ring_k_type", S), ("ring_v_type", S), ("ring", I),
                ("n_sequences", I), ("block_size", I), ("max_blocks", I)]


BUILD = c.CFUNCTYPE(c.c_int, P, c.POINTER(StepRequest), P)
ROPE = c.CFUNCTYPE(None, P, I, c.POINTER(c.c_float), c.POINTER(c.c_float))
LAST, ALL = 1, 2  # enum pawl_step_logits; 0: none


class ModelOptions(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("n_layers", I), ("n_kv_heads", I), ("head_dim", I),
                ("n_vocab", I), ("rope_width", I), ("rope_halves", I), ("window", I),
                ("window_layers", P), ("n_window_layers", I), ("model", c.c_uint64),
                ("build", BUILD), ("rope", ROPE), ("window_rope", P), ("user", P)]


class DecoderSettings(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("capacity", I), ("kv_type", S), ("prefill_chunk", I),
                ("rings", I), ("ring_rollback", I)]


class PoolSettings(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("n_blocks", I), ("block_size", I), ("max_blocks", I),
                ("kv_type", S), ("prefill_chunk", I)]


class SchedulerSettings(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("max_batch", I), ("optimistic", I),
                ("max_prefixes", I), ("event", P), ("user", P)]


class RequestSettings(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("prompt", P), ("n_prompt", I), ("max_new", I),
                ("eos", P), ("n_eos", I), ("priority", I), ("no_sharing", I), ("sample", P),
                ("user", P)]


class RequestReport(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("phase", I), ("finish", I), ("error", S),
                ("n_prompt", I), ("n_new", I), ("tokens", c.POINTER(c.c_uint32)), ("n_shared", I),
                ("submit_step", I), ("admit_step", I), ("first_token_step", I), ("finish_step", I),
                ("n_evictions", I), ("n_restores", I), ("n_recomputes", I)]


# --- the graphs: those of docs/hosts.md, line by line ---

# Of one sequence in order; [T] and the like are of the request.
STEP = """
sym $attended_len : [T]..[capacity]
%token_ids = const {role = data} : u32[[T]]
%rope_cos = const {role = data} : f32[[T], 16]
%rope_sin = const {role = data} : f32[[T], 16]
%offset = const {role = data} : i64[]
%embedding = const : f32[64, 32]
%norm = const : f32[32]
%wq = const : f32[32, 32]
%wk = const : f32[16, 32]
%wv = const : f32[16, 32]
%wo = const : f32[32, 32]
%up = const : f32[64, 32]
%down = const : f32[32, 64]
%cache.k.0 = const {role = kv} : [k_type]
%cache.v.0 = const {role = kv} : [v_type]
%x = gather %embedding, %token_ids : f32[[T], 32]
%n = rms_norm %x, %norm {eps = 1e-05} : f32[[T], 32]
%q0 = matmul %n, %wq : f32[[T], 32]
%k0 = matmul %n, %wk : f32[[T], 16]
%v0 = matmul %n, %wv : f32[[T], 16]
%q1 = reshape %q0 : f32[[T], 2, 16]
%k1 = reshape %k0 : f32[[T], 1, 16]
%v1 = reshape %v0 : f32[[T], 1, 16]
%q = rope %q1, %rope_cos, %rope_sin : f32[[T], 2, 16]
%k2 = rope %k1, %rope_cos, %rope_sin : f32[[T], 1, 16]
%k3 = cast %k2 {dtype = f16} : f16[[T], 1, 16]
%v3 = cast %v1 {dtype = f16} : f16[[T], 1, 16]
%k4 = permute %k3 {perm = [1, 0, 2]} : f16[1, [T], 16]
%v4 = permute %v3 {perm = [1, 0, 2]} : f16[1, [T], 16]
%k5 = reshape %k4 : f16[1, 1, [T], 16]
%v5 = reshape %v4 : f16[1, 1, [T], 16]
%k = write_slice %cache.k.0, %k5, %offset {axis = 2} : [k_type]
%v = write_slice %cache.v.0, %v5, %offset {axis = 2} : [v_type]
%a0 = attention %q, %k, %v, %offset {scale = 0.25, sym = $attended_len} : f32[[T], 2, 16]
%a1 = reshape %a0 : f32[[T], 32]
%a = matmul %a1, %wo : f32[[T], 32]
%h = add %x, %a : f32[[T], 32]
%m = rms_norm %h, %norm {eps = 1e-05} : f32[[T], 32]
%u0 = matmul %m, %up : f32[[T], 64]
%u = silu %u0 : f32[[T], 64]
%d = matmul %u, %down : f32[[T], 32]
%y = add %h, %d : f32[[T], 32]
"""

# What follows where logits are asked for: of the last row, of all.
LAST_LOGITS = """
%head = const : f32[64, 32]
%last = slice %y {start = [[T-1], 0], stop = [[T], 32]} : f32[1, 32]
%logits = matmul %last, %head : f32[1, 64]
output %logits
"""
ALL_LOGITS = """
%head = const : f32[64, 32]
%logits = matmul %y, %head : f32[[T], 64]
output %logits
"""

# Of sequences over blocks: these stand in place of the lines of the same names, and of %offset.
PAGED = """
sym $attended_len : 1..[reach]
%positions = const {role = data} : i64[[T]]
%write_index = const {role = data} : i64[[T]]
%block_table = const {role = data} : u32[[n_sequences], [max_blocks]]
%k = write_rows %cache.k.0, %k5, %write_index {axis = 2} : [k_type]
%v = write_rows %cache.v.0, %v5, %write_index {axis = 2} : [v_type]
%a0 = paged_attention %q, %k, %v, %positions, %block_table {scale = 0.25, block = [block_size], sym = $attended_len} : f32[[T], 2, 16]
"""


def statements(text):
    """The lines of a text by what stands before their first blank and sign."""
    return {line.split(" = ")[0].split(" :")[0]: line for line in text.strip().split("\n")}


def step_text(request):
    lines = statements(STEP)
    if request.n_sequences:
        paged = statements(PAGED)
        tables = [paged.pop(name) for name in ("%positions", "%write_index", "%block_table")]
        lines.update(paged)
        lines["%offset"] = "\n".join(tables)
    text = "\n".join(lines.values())
    text += {0: "", LAST: LAST_LOGITS, ALL: ALL_LOGITS}[request.logits]
    values = {"T": request.n_tokens, "T-1": request.n_tokens - 1, "capacity": request.capacity,
              "k_type": request.k_type.decode(), "v_type": request.v_type.decode(),
              "n_sequences": request.n_sequences, "max_blocks": request.max_blocks,
              "block_size": request.block_size, "reach": request.max_blocks * request.block_size}
    for name, value in values.items():
        text = text.replace(f"[{name}]", str(value))
    return text.encode()


# --- the host ---

class Model:
    """What Pawl calls back; must live as long as the model and all made from it."""

    def __init__(self, pawl):
        self.pawl = pawl
        self.options = ModelOptions(n_layers=1, n_kv_heads=1, head_dim=HEAD, n_vocab=VOCAB,
                                    rope_width=HEAD, build=BUILD(self.build), rope=ROPE(self.rope))

    def build(self, _user, request, graph):
        text = step_text(request.contents)
        try:
            self.pawl.graph_add_text(graph, text, len(text))
        except host.Refusal as refusal:
            print("driver.py:", refusal, file=sys.stderr)
            return 1
        return 0

    def rope(self, _user, position, cos, sin):
        for row, values in zip((cos, sin), host.rope_rows(position)):
            c.memmove(row, values.tobytes(), HEAD * 4)


def tokens_of(values):
    return (c.c_uint32 * len(values))(*values)


def likeliest(logits):
    row = c.cast(logits, c.POINTER(c.c_float))[:VOCAB]
    return row.index(max(row))


def schedule(pawl, model, prompts):
    """The tokens after each prompt; steps of a prompt's chunk and of both requests at once."""
    settings = PoolSettings(n_blocks=4, block_size=16, max_blocks=2, prefill_chunk=4)
    pool = pawl.make(pawl.pool_create, model, c.byref(settings))
    options = SchedulerSettings(max_batch=2)
    scheduler = pawl.make(pawl.scheduler_create, pool, c.byref(options))
    ids, texts = [], []
    for prompt in prompts:
        given, request = tokens_of(prompt), c.c_uint64()
        asked = RequestSettings(prompt=c.addressof(given), n_prompt=len(prompt), max_new=TOKENS)
        pawl.scheduler_submit(scheduler, c.byref(asked), c.byref(request))
        ids.append(request)
    while pawl.scheduler_has_work(scheduler):
        pawl.scheduler_step(scheduler)
    for request in ids:
        report = RequestReport()
        pawl.scheduler_report(scheduler, request, c.byref(report))
        if report.error:
            sys.exit(f"driver.py: {report.error.decode()}")
        texts.append(report.tokens[:report.n_new])
    pawl.scheduler_release(scheduler)
    pawl.pool_release(pool)
    return texts


def decode(pawl, model, prompt, wanted):
    """The same text by a decoder: token by token, then as a prompt, then as a guess."""
    settings = DecoderSettings(capacity=CAPACITY, prefill_chunk=4)
    decoder = pawl.make(pawl.decoder_create, model, c.byref(settings))
    text, logits = list(prompt), c.c_void_p()
    while len(text) < len(prompt) + len(wanted):
        pawl.decoder_append(decoder, tokens_of(text[-1:]), 1, c.byref(logits))
        text.append(likeliest(logits.value))
    ends = text[len(prompt):] == wanted
    pawl.decoder_set_len(decoder, 0, None)
    pawl.decoder_append(decoder, tokens_of(text[:-2]), len(text) - 2, c.byref(logits))
    ends = ends and likeliest(logits.value) == text[-2]
    pawl.decoder_verify(decoder, tokens_of(text[-2:]), 2, 2, c.byref(logits))
    ends = ends and likeliest(logits.value) == text[-1]
    pawl.decoder_release(decoder)
    if not ends:
        sys.exit("driver.py: a decoder and the scheduler have other tokens")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: driver.py PATH/pawl_plugin.so [TARGET]")
    pawl = host.Pawl(sys.argv[1], TABLE)
    services = host.Services(log=host.LOG(host.log_line))
    target = sys.argv[2].encode() if len(sys.argv) > 2 else None
    options = host.ContextOptions(target=target, n_threads=1)
    context = pawl.make(pawl.context_create, c.byref(services), c.byref(options))
    weights, kept = host.lend_weights(pawl, context)
    described = Model(pawl)
    model = pawl.make(pawl.model_create, context, weights, c.byref(described.options))
    prompts = [[1], [2]]
    texts = schedule(pawl, model, prompts)
    for prompt, text in zip(prompts, texts):
        print(*text)
        decode(pawl, model, prompt, text)
    longer = prompts[0] + texts[0][:9]
    if schedule(pawl, model, [longer])[0][:TOKENS - 9] != texts[0][9:]:
        sys.exit("driver.py: a longer prompt has other tokens")
    print(", ".join(host.counters(pawl, context)))
    pawl.model_release(model)
    pawl.weights_release(weights)
    pawl.context_release(context)
    del kept


if __name__ == "__main__":
    try:
        main()
    except (OSError, host.Refusal) as error:
        sys.exit(f"driver.py: {error}")
