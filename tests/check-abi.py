#!/usr/bin/env python3
"""
check-abi.py HEADER DUMP [--bless]: whether the public ABI is the one in DUMP, and layouts are what the
dump says for the compiler $CC.  --bless writes a new dump, if the old one is a beginning of it: structs
and the table only grow at their end, enumerators and functions are only added.
"""
import os
import re
import subprocess
import sys


def compiler(header):
    """The command, which finds what the header includes."""
    return os.environ.get("CC", "cc").split() + ["-I" + os.path.join(os.path.dirname(header), "..")]


def preprocess(header):
    """The declarations of the header and those beside it, without those of the system's."""
    text = subprocess.run(compiler(header) + ["-E", header], check=True, capture_output=True,
                          text=True).stdout
    folder = os.path.realpath(os.path.dirname(header))
    kept, inside = [], False
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            inside = os.path.realpath(os.path.dirname(mark[1])) == folder
        elif inside:
            kept.append(line)
    return re.sub(r"\s+", " ", " ".join(kept))


def spaced(text):
    """A declaration in one way of writing it."""
    text = re.sub(r"\s+", " ", text.strip())
    return re.sub(r" ?([*(),]) ?", lambda m: {",": ", "}.get(m[1], m[1]), text).replace("*const", "* const")


def members(body):
    """(name, declaration) of a struct's members; `int64_t a, b` is two."""
    for statement in body.split(";"):
        statement = statement.strip()
        if not statement:
            continue
        function = re.search(r"\(\*(\w+)\)", statement)
        if function:
            yield function[1], spaced(statement)
            continue
        first, *rest = statement.split(",")
        kind, name = re.match(r"(.*?)(\w+)$", first.strip()).groups()
        yield name, spaced(kind + name)
        for other in map(str.strip, rest):
            yield other.lstrip("* "), spaced(kind.rstrip("* ") + " " + other)


def parse(text):
    """The lines of the dump."""
    lines = []
    for match in re.finditer(r"(?:struct|enum) (\w+) \{(.*?)\} ?;|typedef ([^;]*);|"
                             r"__attribute__\(\(visibility\(\"default\"\)\)\) ([^;]*);", text):
        name, body, typedef, function = match.groups()
        if typedef:
            lines.append(f"typedef {spaced(typedef)}")
        elif function:
            lines.append(f"function {spaced(function)}")
        elif match[0].startswith("enum"):
            for item in body.split(","):
                if item.strip():
                    key, value = item.split("=")
                    lines.append(f"enum {name} {key.strip()} {int(value)}")
        else:
            for i, (member, declaration) in enumerate(members(body)):
                lines.append(f"struct {name} {8 * i} {member}: {declaration}")
    return lines


def check_layout(header, lines):
    """The compiler's word for every offset and value."""
    asserts, ends = [f'#include "{header}"', "#include <stddef.h>"], {}
    for line in lines:
        words = line.split()
        if words[0] == "struct":
            member = words[3].rstrip(":")
            asserts.append(f"_Static_assert(offsetof(struct {words[1]}, {member}) == {words[2]} && "
                           f"sizeof(((struct {words[1]} *)0)->{member}) == 8, \"{line[:60]}\");")
            ends[words[1]] = int(words[2]) + 8
        elif words[0] == "enum":
            asserts.append(f"_Static_assert({words[2]} == {words[3]}, \"{words[2]}\");")
    asserts += [f"_Static_assert(sizeof(struct {name}) == {end}, \"size of {name}\");"
                for name, end in ends.items()]
    run = subprocess.run(compiler(header) + ["-std=c11", "-fsyntax-only", "-xc", "-"],
                         input="\n".join(asserts), capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"check-abi: layouts are not those of the dump:\n{run.stderr}")
    return len(asserts) - 2


def main():
    header, dump = sys.argv[1:3]
    new = parse(preprocess(header))
    if len(new) < 100:
        sys.exit(f"check-abi: {len(new)} declarations found in {header}")
    n_asserts = check_layout(header, new)
    old = open(dump).read().splitlines() if os.path.exists(dump) else []
    if "--bless" in sys.argv:
        broken = [line for line in old if line not in new]
        if broken:
            sys.exit("check-abi: this breaks hosts that were compiled with the old header:\n  " +
                     "\n  ".join(broken))
        with open(dump, "w") as file:
            file.write("\n".join(new) + "\n")
    elif new != old:
        changes = ["- " + line for line in old if line not in new]
        changes += ["+ " + line for line in new if line not in old]
        sys.exit("check-abi: the public ABI is not that of " + os.path.basename(dump) + ":\n  " +
                 "\n  ".join(changes or ["the order of declarations differs"]) +
                 "\nIf all of that was added at the end of a struct, an enum or the table, run "
                 "`make bless-abi` and commit the dump; anything else needs a new PAWL_ABI_VERSION.")
    print(f"{len(new)} declarations, {n_asserts} layouts")


if __name__ == "__main__":
    main()
