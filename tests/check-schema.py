#!/usr/bin/env python3
"""
check-schema.py SCHEMA DOCUMENT...: whether each document is valid.  With --deletions every required
member that the schema names must also occur in the documents, and each document without any one of
them must be invalid.  Every known member must be a required one.

Knows the words of JSON Schema that docs/plan-schema.json uses and refuses any other.
"""

import copy
import json
import re
import sys

KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties",
         "additionalProperties", "items", "enum", "pattern", "minimum"}

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}


class Schema:
    def __init__(self, root):
        self.root = root
        self.required = set()  # (id of the schema, member)
        self.seen = {}         # the same -> paths in the document
        self.walk(root)

    def walk(self, schema):
        unknown = set(schema) - KNOWN
        if unknown:
            raise SystemExit("the schema uses words this checker does not know: %s" % unknown)
        if set(schema.get("required", [])) != set(schema.get("properties", {})):
            raise SystemExit("required and known members differ: %s" % schema.get("required"))
        for name in schema.get("required", []):
            self.required.add((id(schema), name))
        for group in ("properties", "$defs"):
            for inner in schema.get(group, {}).values():
                self.walk(inner)
        if isinstance(schema.get("items"), dict):
            self.walk(schema["items"])

    def resolve(self, reference):
        schema = self.root
        for part in reference[2:].split("/"):
            schema = schema[part]
        return schema

    def errors(self, schema, value, path):
        if "$ref" in schema:
            yield from self.errors(self.resolve(schema["$ref"]), value, path)
        if "type" in schema:
            wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(TYPES[name](value) for name in wanted):
                yield "%s: not of type %s" % (path, "/".join(wanted))
                return
        if "enum" in schema and value not in schema["enum"]:
            yield "%s: %r is none of %s" % (path, value, schema["enum"])
        if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            yield "%s: %r does not match %s" % (path, value, schema["pattern"])
        if TYPES["number"](value) and value < schema.get("minimum", value):
            yield "%s: %r is below %r" % (path, value, schema["minimum"])
        if isinstance(value, dict):
            yield from self.member_errors(schema, value, path)
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                yield from self.errors(schema["items"], item, path + (i,))

    def member_errors(self, schema, value, path):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name in value:
                self.seen.setdefault((id(schema), name), []).append(path + (name,))
            else:
                yield "%s: no %s" % (path, name)
        for name, item in value.items():
            if name in properties:
                yield from self.errors(properties[name], item, path + (name,))
            elif schema.get("additionalProperties", True) is False:
                yield "%s: unknown member %s" % (path, name)


def without(document, path):
    document = copy.deepcopy(document)
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return document


def try_deletions(schema, document):
    """Deletes the first and the last occurrence of each member; the number of deletions."""
    n = 0
    for paths in list(schema.seen.values()):
        for path in {paths[0], paths[-1]}:
            n += 1
            if not any(schema.errors(schema.root, without(document, path), ())):
                raise SystemExit("still valid without %s" % (path,))
    return n


def main():
    arguments = [word for word in sys.argv[1:] if word != "--deletions"]
    with open(arguments[0], encoding="utf-8") as file:
        schema = Schema(json.load(file))
    missing = set(schema.required)
    deletions = 0
    for name in arguments[1:]:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        schema.seen = {}
        for error in schema.errors(schema.root, document, ()):
            raise SystemExit("%s: %s" % (name, error))
        missing -= set(schema.seen)
        if "--deletions" in sys.argv:
            deletions += try_deletions(schema, document)
    if "--deletions" in sys.argv and missing:
        raise SystemExit("never seen: %s" % sorted(name for _, name in missing))
    print("%d documents, %d deletions" % (len(arguments) - 1, deletions))


if __name__ == "__main__":
    main()
