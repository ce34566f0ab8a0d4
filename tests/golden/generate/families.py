#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes families of operator cases: NAME.json with the descriptions, NAME.params with the arrays.

families.py list FAMILY.json...              # names of the cases
families.py unpack FAMILY.json FOLDER [CASE...]   # one folder for each case: case.json, symbol.json, *.params
families.py pack FAMILY.json FOLDER...       # adds such folders to a family, or replaces its cases of these names

The format is described in ../README.md. Needs Python 3.8 or later and nothing else.
"""
import json
import os
import re
import struct
import sys

FORMAT = "cohort-golden-operators-1"
SETS = ("inputs", "expected")  # the .params files of a case folder, and the middle of an array's name in a family

# One line of a case's description for each of these; members that are not named here follow on a line of their own.
LINES = (
    ("op", "kind", "attrs", "ops", "note"),
    ("arguments", "auxiliary_states", "mutates", "out_like", "is_train", "grad_req", "loss_head"),
    ("inputs", "aux", "aux_changed_by"),
    ("outputs", "has_eval"),
    ("rtol", "atol", "tol_reason", "near_zero"),
    ("verified",),
)
MOST_COLUMNS = 240  # a list of nodes that is longer gets one line for each node

DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
DTYPE_BYTES = (4, 8, 2, 1, 4, 1, 8, 1)
FILE_MAGIC, DENSE_V2, NUMPY_V3 = 0x112, 0xF993FAC9, 0xF993FACA


def record_end(data, begin):
    """The end of the array record of a .params file that begins at `begin`."""
    magic, storage, num_axes = struct.unpack_from("<Iii", data, begin)
    if magic not in (DENSE_V2, NUMPY_V3) or storage != 0:
        raise ValueError("only dense arrays as MXNet 1.x writes them are supported")
    at = begin + 12
    shape = struct.unpack_from("<%dq" % max(num_axes, 0), data, at)
    at += 8 * len(shape)
    if num_axes < 0 or (num_axes == 0 and magic == DENSE_V2):  # an array without a value
        return at
    (dtype,) = struct.unpack_from("<i", data, at + 8)  # behind the type and the number of a device
    size = 1
    for length in shape:
        size *= length
    return at + 12 + size * DTYPE_BYTES[dtype]


def read_params(path):
    """The records of a .params file, as bytes, by name and in the order of the file."""
    with open(path, "rb") as file:
        data = file.read()
    magic, _, num = struct.unpack_from("<QQQ", data)
    if magic != FILE_MAGIC:
        raise ValueError(path + " is not a .params file")
    at, records = 24, []
    for _ in range(num):
        end = record_end(data, at)
        records.append(data[at:end])
        at = end
    (num_names,) = struct.unpack_from("<Q", data, at)
    at += 8
    names = []
    for _ in range(num_names):
        (length,) = struct.unpack_from("<Q", data, at)
        names.append(data[at + 8 : at + 8 + length].decode())
        at += 8 + length
    if at != len(data) or num_names != num or len(set(names)) != num:
        raise ValueError(path + ": names and arrays do not match")
    return dict(zip(names, records))


def write_params(path, records):
    names = b"".join(struct.pack("<Q", len(name.encode())) + name.encode() for name in records)
    with open(path, "wb") as file:
        file.write(struct.pack("<QQQ", FILE_MAGIC, 0, len(records)))
        file.write(b"".join(records.values()))
        file.write(struct.pack("<Q", len(records)) + names)


def encode(array):
    """The record of a NumPy array."""
    head = struct.pack("<Iii%dq" % array.ndim, DENSE_V2, 0, array.ndim, *array.shape)
    return head + struct.pack("<iii", 1, 0, DTYPES.index(str(array.dtype))) + array.tobytes()


def decode(record):
    """The NumPy array of a record."""
    import numpy

    num_axes = struct.unpack_from("<i", record, 8)[0]
    shape = struct.unpack_from("<%dq" % num_axes, record, 12)
    at = 12 + 8 * num_axes
    dtype = DTYPES[struct.unpack_from("<i", record, at + 8)[0]]
    return numpy.frombuffer(record[at + 12 :], dtype).reshape(shape)


class Case:
    """A description as in case.json, the graph as in symbol.json (None: imperative), and arrays as records."""

    def __init__(self, description, symbol, inputs, expected):
        self.description, self.symbol = description, symbol
        self.inputs, self.expected = inputs, expected


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def number_of(name):
    """Sorts 99-a before 100-b."""
    match = re.match(r"\d+", name)
    return (int(match.group()) if match else sys.maxsize, name)


def read_family(path):
    """The cases of a family, by name."""
    family = read_json(path)
    if family.get("format") != FORMAT:
        raise ValueError("%s: the format is not %s" % (path, FORMAT))
    cases = {}
    for name, description in family["cases"].items():
        symbol = description.pop("symbol", None)
        cases[name] = Case(description, symbol, {}, {})
    for key, record in read_params(path[: -len(".json")] + ".params").items():
        name, which, array = key.split("/", 2)
        getattr(cases[name], which)[array] = record
    return cases


def text_of_symbol(symbol):
    nodes = [json.dumps(node) for node in symbol["nodes"]]
    rest = ["%s: %s" % (json.dumps(key), json.dumps(value)) for key, value in symbol.items() if key != "nodes"]
    line = ", ".join(nodes)
    if len(line) > MOST_COLUMNS:
        line = "\n   " + ",\n   ".join(nodes)
    return '{"nodes": [%s],\n   %s}' % (line, ", ".join(rest))


def text_of_case(case):
    members = dict(case.description)
    lines = []
    for keys in LINES + (tuple(key for key in members if not any(key in line for line in LINES)),):
        texts = ["%s: %s" % (json.dumps(key), json.dumps(members[key])) for key in keys if key in members]
        if texts:
            lines.append(", ".join(texts))
    if case.symbol is not None:
        lines.append('"symbol": ' + text_of_symbol(case.symbol))
    return "{" + ",\n  ".join(lines) + "}"


def write_family(path, cases):
    """Writes both files of a family, its cases sorted by number."""
    names = sorted(cases, key=number_of)
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"format": "%s",\n"cases": {\n' % FORMAT)
        file.write(",\n".join("%s: %s" % (json.dumps(name), text_of_case(cases[name])) for name in names))
        file.write("\n}}\n")
    records = {}
    for name in names:
        for which in SETS:
            for array, record in getattr(cases[name], which).items():
                records["%s/%s/%s" % (name, which, array)] = record
    write_params(path[: -len(".json")] + ".params", records)


def read_folder(folder):
    symbol = os.path.join(folder, "symbol.json")
    sets = [read_params(os.path.join(folder, which + ".params")) for which in SETS]
    return Case(read_json(os.path.join(folder, "case.json")), read_json(symbol) if os.path.exists(symbol) else None, *sets)


def write_folder(folder, case):
    os.makedirs(folder)
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(case.description, indent=1) + "\n")
    if case.symbol is not None:
        with open(os.path.join(folder, "symbol.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(case.symbol, indent=2) + "\n")
    for which in SETS:
        write_params(os.path.join(folder, which + ".params"), getattr(case, which))


def main(args):
    if len(args) < 2 or args[0] not in ("list", "unpack", "pack") or (args[0] != "list" and len(args) < 3):
        print(__doc__)
        return 2
    command, family, rest = args[0], args[1], args[2:]
    if command == "list":
        for path in [family] + rest:
            print("\n".join(read_family(path)))
    elif command == "unpack":
        cases = read_family(family)
        for name in rest[1:] or cases:
            write_folder(os.path.join(rest[0], name), cases[name])
    else:
        cases = read_family(family) if os.path.exists(family) else {}
        for folder in rest:
            cases[os.path.basename(os.path.normpath(folder))] = read_folder(folder)
        write_family(family, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
