#!/usr/bin/env python3
"""The host of examples/host.c in Python: ctypes, the standard library, and pawl/plugin.h written down.

    host.py PATH/pawl_plugin.so [TARGET]

Line 1: the tokens of text A.  Line 2: those of text B, which starts with another token.  Line 3: what
was refused.  Line 4: counters.
"""
import array
import ctypes as c
import math
import sys

VOCAB, WIDTH, HEAD, FFN, CAPACITY, TOKENS = 64, 32, 16, 64, 32, 16

# --- pawl/plugin.h, as much as this host uses.  Members are 8 bytes wide, so that nothing is padded. ---

ABI_VERSION = 1
DATA, SYMBOL = 2, 3  # enum pawl_binding_role
UNSUPPORTED = 5  # enum pawl_status_code
LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
MEMORY = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p, c.c_size_t)
RETURNED = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)


class Struct(c.Structure):
    """A struct that starts with its size."""

    def __init__(self, **members):
        super().__init__(struct_size=c.sizeof(self), **members)


class Services(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("user", c.c_void_p), ("log", LOG),
                ("alloc", c.c_void_p), ("free", c.c_void_p), ("parallel_for", c.c_void_p),
                ("is_aborted", c.c_void_p)]


class ContextOptions(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("target", c.c_char_p), ("n_threads", c.c_int64),
                ("activation_bits", c.c_int64)]


class CacheOptions(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("memory", MEMORY), ("returned", RETURNED),
                ("user", c.c_void_p)]


class CacheReport(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("verdict", c.c_int64), ("field", c.c_char_p),
                ("held", c.c_uint64), ("asked", c.c_uint64), ("reason", c.c_char_p),
                ("name", c.c_char_p)]


class Counter(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("value", c.c_uint64)]


P, I, N, S = c.c_void_p, c.c_int64, c.c_size_t, c.c_char_p  # what arguments are made of
OUT = c.POINTER(c.c_void_p)

# The table in its order: name, what it returns, what it takes.  P as a result is a status.  It may stop
# anywhere, as entries are found by their place and the table only grows at its end; driver.py goes on.
TABLE = [
    ("status_code", c.c_int, P), ("status_message", S, P), ("status_free", None, P),
    ("context_create", P, P, P, OUT), ("context_release", None, P),
    ("context_describe", P, P, P, P), ("context_counter", c.c_int, P, I, P),
    ("graph_from_text", P, P, S, N, OUT), ("graph_create", P, P, S, OUT),
    ("graph_symbol", P, P, S, I, I, I), ("graph_add", P, P, S, S, P, I, S, S),
    ("graph_output", P, P, S), ("graph_add_all", P, P, P, P), ("graph_to_text", P, P, P, P),
    ("graph_release", None, P),
    ("plan_compile", P, P, OUT), ("plan_regrow", P, P, P, OUT), ("plan_retain", None, P),
    ("plan_release", None, P), ("plan_binding", c.c_int, P, I, P), ("plan_find", I, P, I, S),
    ("plan_to_json", P, P, P, P), ("plans_forecast", P, P, I, P),
    ("weights_create", P, P, P, OUT), ("weights_add", P, P, S, S, P, N),
    ("weights_release", None, P),
    ("cache_create", P, P, P, OUT), ("cache_release", None, P), ("cache_len", I, P),
    ("cache_capacity", I, P), ("cache_set_len", P, P, I, P), ("cache_memory", P, P, S, P, P),
    ("cache_reserve", P, P, I), ("cache_fork", P, P, OUT),
    ("cache_save", P, P, c.c_uint64, P, I, P, P),
    ("cache_restore", P, P, c.c_uint64, P, N, P, I, P),
    ("session_create", P, P, P, OUT), ("session_release", None, P),
    ("session_bind", P, P, I, P, N), ("session_use_cache", P, P, P, P),
    ("session_set", P, P, I, P, N), ("session_set_symbol", P, P, I, I),
    ("session_run", P, P, I), ("session_output", P, P, I, OUT, c.POINTER(N)),
]


class Refusal(Exception):
    """A status of Pawl, with its code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Pawl:
    """The table: each entry raises Refusal where it gives a status."""

    def __init__(self, path, table=None):
        table = table or TABLE
        module = c.CDLL(path)
        version = c.c_uint32(ABI_VERSION)
        module.pawl_get_api.restype = c.c_void_p
        if not module.pawl_negotiate(c.byref(version)):
            raise OSError(f"{path} is too old for this program")
        base = module.pawl_get_api(version)
        n_entries = (c.c_size_t.from_address(base).value - 24) // 8
        if n_entries < len(table):
            raise OSError(f"{path} is too old for this program")
        for i, (name, result, *arguments) in enumerate(table):
            entry = c.c_void_p.from_address(base + 24 + 8 * i).value
            call = c.CFUNCTYPE(result, *arguments)(entry)
            setattr(self, name, self.checked(call) if result is P else call)

    def checked(self, call):
        def checked_call(*arguments):
            status = call(*arguments)
            if status:
                refusal = Refusal(self.status_code(status), self.status_message(status).decode())
                self.status_free(status)
                raise refusal
        return checked_call

    def make(self, create, *arguments):
        """What a function gives through its last argument."""
        out = c.c_void_p()
        create(*arguments, c.byref(out))
        return out


# --- the model: what a real host has already ---

WEIGHTS = [("embedding", VOCAB, WIDTH), ("norm", WIDTH), ("wq", WIDTH, WIDTH), ("wk", HEAD, WIDTH),
           ("wv", HEAD, WIDTH), ("wo", WIDTH, WIDTH), ("up", FFN, WIDTH), ("down", WIDTH, FFN),
           ("head", VOCAB, WIDTH)]


def type_of(dims):
    return f"f32[{', '.join(map(str, dims))}]"


def graph_text(capacity):
    kv = f"f16[1, 1, {capacity}, 16]"
    return f"""pawl 1
graph @toy stage values {{
  sym $attended_len : 1..{capacity}
  %ids = const : u32[1] {{role = data}}
  %cos = const : f32[1, 16] {{role = data}}
  %sin = const : f32[1, 16] {{role = data}}
  %offset = const : i64[] {{role = data}}
  {"".join(f"%{name} = const : {type_of(dims)}{chr(10)}  " for name, *dims in WEIGHTS)}
  %cache.k.0 = const : {kv} {{role = kv}}
  %cache.v.0 = const : {kv} {{role = kv}}
  %x = gather %embedding, %ids : f32[1, 32]
  %n = rms_norm %x, %norm {{eps = 1e-05}} : f32[1, 32]
  %q0 = matmul %n, %wq : f32[1, 32]
  %k0 = matmul %n, %wk : f32[1, 16]
  %v0 = matmul %n, %wv : f32[1, 16]
  %q1 = reshape %q0 : f32[1, 2, 16]
  %k1 = reshape %k0 : f32[1, 1, 16]
  %v1 = reshape %v0 : f32[1, 1, 1, 16]
  %q = rope %q1, %cos, %sin : f32[1, 2, 16]
  %k2 = rope %k1, %cos, %sin : f32[1, 1, 16]
  %k3 = reshape %k2 : f32[1, 1, 1, 16]
  %k4 = cast %k3 {{dtype = f16}} : f16[1, 1, 1, 16]
  %v2 = cast %v1 {{dtype = f16}} : f16[1, 1, 1, 16]
  %k = write_slice %cache.k.0, %k4, %offset {{axis = 2}} : {kv}
  %v = write_slice %cache.v.0, %v2, %offset {{axis = 2}} : {kv}
  %a0 = attention %q, %k, %v, %offset {{scale = 0.25, sym = $attended_len}} : f32[1, 2, 16]
  %a1 = reshape %a0 : f32[1, 32]
  %a = matmul %a1, %wo : f32[1, 32]
  %h = add %x, %a : f32[1, 32]
  %m = rms_norm %h, %norm {{eps = 1e-05}} : f32[1, 32]
  %u0 = matmul %m, %up : f32[1, 64]
  %u = silu %u0 : f32[1, 64]
  %d = matmul %u, %down : f32[1, 32]
  %y = add %h, %d : f32[1, 32]
  %logits = matmul %y, %head : f32[1, 64]
  %next = argmax %logits : i32[1]
  output %next
}}
""".encode()


def made_up(i, n):
    """Numbers in [-0.5, 0.5), the same as those of examples/toy.h."""
    seed, values = i + 1, array.array("f")
    for _ in range(n):
        seed = (seed * 1664525 + 1013904223) % 2**32
        values.append((seed >> 8) / 16777216.0 - 0.5)
    return values


def rope_rows(position):
    angles = [position * math.pow(10000.0, -(i // 2 * 2) / HEAD) for i in range(HEAD)]
    return (array.array("f", map(math.cos, angles)), array.array("f", map(math.sin, angles)))


# --- the host ---

class Lender:
    """KV memory of this process; kept until Pawl says that it is no longer used."""

    def __init__(self):
        self.kept = {}
        self.options = CacheOptions(memory=MEMORY(self.lend), returned=RETURNED(self.take_back))

    def lend(self, _user, _name, n_bytes):
        block = c.create_string_buffer(n_bytes + 64)
        address = (c.addressof(block) + 63) // 64 * 64
        self.kept[address] = block
        return address

    def take_back(self, _user, address):
        del self.kept[address]


def log_line(_user, level, message):
    if level < 2:
        print("pawl:", message.decode(), file=sys.stderr)


def lend_weights(pawl, context):
    weights, kept = pawl.make(pawl.weights_create, context, None), []
    for i, (name, *dims) in enumerate(WEIGHTS):
        values = made_up(i, math.prod(dims))
        address, n = values.buffer_info()
        pawl.weights_add(weights, name.encode(), type_of(dims).encode(), address, n * 4)
        kept.append(values)
    return weights, kept


def decode(pawl, at, session, cache, token):
    """Appends a token to a cache and returns the next."""
    position = pawl.cache_len(cache)
    data = {"ids": array.array("I", [token]), "offset": array.array("q", [position])}
    data["cos"], data["sin"] = rope_rows(position)
    pawl.session_use_cache(session, cache, None)
    for name, values in data.items():
        address, n = values.buffer_info()
        pawl.session_set(session, at[name], address, n * values.itemsize)
    pawl.session_set_symbol(session, at["attended_len"], position + 1)
    pawl.session_run(session, 1)
    out, n_bytes = c.c_void_p(), c.c_size_t()
    pawl.session_output(session, 0, c.byref(out), c.byref(n_bytes))
    return c.c_int32.from_address(out.value).value


def make_cache(pawl, plan, lender):
    try:
        return pawl.make(pawl.cache_create, plan, c.byref(lender.options))
    except Refusal as refusal:
        if refusal.code != UNSUPPORTED:
            raise
    return pawl.make(pawl.cache_create, plan, None)  # the target has memory of its own


def decode_two(pawl, plan, session, lender):
    """Two texts take turns: each has a cache of its own, both have the one plan and session."""
    at = {name: pawl.plan_find(plan, DATA, name.encode()) for name in ("ids", "cos", "sin", "offset")}
    at["attended_len"] = pawl.plan_find(plan, SYMBOL, b"attended_len")
    caches = [make_cache(pawl, plan, lender) for _ in range(2)]
    texts = [[1], [2]]
    for _ in range(TOKENS):
        for text, cache in zip(texts, caches):
            text.append(decode(pawl, at, session, cache, text[-1]))
    for text, cache in zip(texts, caches):
        print(*text[1:])
        pawl.cache_release(cache)


def provoke_refusal(pawl, context, plan, session):
    """A cache of another capacity cannot take the place of those the plan was made for."""
    text, report = graph_text(2 * CAPACITY), CacheReport()
    graph = pawl.make(pawl.graph_from_text, context, text, len(text))
    larger = pawl.make(pawl.plan_regrow, plan, graph)
    cache = pawl.make(pawl.cache_create, larger, None)
    try:
        pawl.session_use_cache(session, cache, c.byref(report))
        print("refused: no")
    except Refusal as refusal:
        print(f"refused: {refusal}: {report.field.decode()}, {report.held} is held, "
              f"{report.asked} asked for")
    pawl.cache_release(cache)
    pawl.plan_release(larger)
    pawl.graph_release(graph)


def counters(pawl, context):
    counter, i = Counter(), 0
    while pawl.context_counter(context, i, c.byref(counter)):
        if counter.value and counter.name != b"run_ns":
            yield f"{counter.name.decode()} {counter.value}"
        i += 1


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: host.py PATH/pawl_plugin.so [TARGET]")
    pawl, lender = Pawl(sys.argv[1]), Lender()
    services = Services(log=LOG(log_line))
    target = sys.argv[2].encode() if len(sys.argv) > 2 else None
    options = ContextOptions(target=target, n_threads=1)
    context = pawl.make(pawl.context_create, c.byref(services), c.byref(options))
    text = graph_text(CAPACITY)
    graph = pawl.make(pawl.graph_from_text, context, text, len(text))
    plan = pawl.make(pawl.plan_compile, graph)
    pawl.graph_release(graph)
    weights, kept = lend_weights(pawl, context)
    session = pawl.make(pawl.session_create, plan, weights)
    decode_two(pawl, plan, session, lender)
    provoke_refusal(pawl, context, plan, session)
    print(", ".join(counters(pawl, context)))
    pawl.session_release(session)
    pawl.weights_release(weights)
    pawl.plan_release(plan)
    pawl.context_release(context)
    if lender.kept:
        sys.exit("host.py: memory was not returned")
    del kept


if __name__ == "__main__":
    try:
        main()
    except (OSError, Refusal) as error:
        sys.exit(f"host.py: {error}")
