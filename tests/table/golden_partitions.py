#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""The partition function once more, in plain Python and by its specification, and the golden values made with it.

    golden_partitions.py          says whether docs/formats/partitioning.md and golden_partitions.inc are up to date
    golden_partitions.py --write  brings them up to date

The values are a promise to users: an existing row never changes.
"""
import math
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "formats" / "partitioning.md"
INCLUDE = HERE / "golden_partitions.inc"
BEGIN, END = "<!-- golden values: begin -->", "<!-- golden values: end -->"
MASK = 0xFFFFFFFF
NULL_HASH = MASK


def rotl32(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & MASK


def murmur3_x86_32(data: bytes, seed: int = 0) -> int:
    def scramble(block: int) -> int:
        return rotl32(block * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK

    value = seed
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        value ^= scramble(int.from_bytes(data[at : at + 4], "little"))
        value = (rotl32(value, 13) * 5 + 0xE6546B64) & MASK
    if whole < len(data):
        value ^= scramble(int.from_bytes(data[whole:], "little"))
    value ^= len(data) & MASK
    value = (value ^ value >> 16) * 0x85EBCA6B & MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & MASK
    return value ^ value >> 16


def combine(left: int, right: int) -> int:
    return left ^ (right + 0x9E3779B9 + (left << 6) + (left >> 2)) & MASK


def row_hash(keys: list) -> int:
    """The hash of a row, of each key's bytes or None for null."""
    hashes = [NULL_HASH if key is None else murmur3_x86_32(key) for key in keys]
    value = hashes[0]
    for further in hashes[1:]:
        value = combine(value, further)
    return value


def integer(width: int, value: int) -> bytes:
    return (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def floating(code: str, value: float) -> bytes:
    if math.isnan(value):
        return {"f": bytes.fromhex("0000c07f"), "d": bytes.fromhex("000000000000f87f")}[code]
    return struct.pack("<" + code, 0.0 if value == 0 else value)


def half(bits: int) -> bytes:
    return floating("f", struct.unpack("<e", struct.pack("<H", bits))[0])


def decimal(unscaled: int, precision: int) -> bytes:
    return integer(4 if precision <= 9 else 8 if precision <= 18 else 16 if precision <= 38 else 32, unscaled)


def cpp_text(value: bytes) -> str:
    return "std::string_view(\"" + "".join(f"\\{byte:03o}" for byte in value) + f"\", {len(value)})"


def cases():
    """Yields: type, value, the key's bytes (None for null), and the C++ expression that hashes it."""
    yield "any", "null", None, "null_hash"
    for value in (False, True):
        yield "bool", str(value).lower(), integer(1, value), f"hash_value({str(value).lower()})"
    for width, values in (
        (1, (0, 42, -1, -128)),
        (2, (0, 42, -1, -32768)),
        (4, (0, 1, 42, -1, -(2**31), 2**31 - 1)),
        (8, (0, 1, 42, -1, 6_000_000_000, -(2**63), 2**63 - 1)),
    ):
        bits = 8 * width
        for value in values:
            literal = "INT64_MIN" if value == -(2**63) else f"{value}LL"
            expression = f"hash_value(static_cast<std::int{bits}_t>({literal}))"
            yield f"int{bits}", str(value), integer(width, value), expression
        top = 2**bits - 1
        yield f"uint{bits}", str(top), integer(width, top), f"hash_value(static_cast<std::uint{bits}_t>({top}ULL))"
    for name, code, suffix in (("float", "f", "F"), ("double", "d", "")):
        for value in (0.0, -0.0, 1.0, -1.5, 3.25e10, math.inf, -math.inf, math.nan):
            if math.isfinite(value):
                literal = f"{value!r}{suffix}"
            else:
                literal = f"{'-' if value < 0 else ''}std::numeric_limits<{name}>::"
                literal += "quiet_NaN()" if math.isnan(value) else "infinity()"
            yield name, repr(value), floating(code, value), f"hash_value({literal})"
    yield "float", "nan (bits ffc00001)", floating("f", math.nan), "hash_value(std::bit_cast<float>(0xffc0'0001U))"
    nan = "hash_value(std::bit_cast<double>(0x7ff0'0000'0000'0001ULL))"
    yield "double", "nan (bits 7ff0000000000001)", floating("d", math.nan), nan
    for bits, text in ((0x3C00, "1.0"), (0x8000, "-0.0"), (0x0001, "5.960464477539063e-08"), (0xFBFF, "-65504.0"),
                       (0x7C00, "inf"), (0x7E00, "nan")):
        yield "half", text, half(bits), f"hash_value(half_to_float(0x{bits:04x}))"
    for precision in (9, 18, 38, 76):
        for unscaled in (12345, -12345):
            expression = f"hash_decimal(std::int64_t{{{unscaled}}}, {precision})"
            yield f"decimal({precision}, 2)", f"{unscaled / 100}", decimal(unscaled, precision), expression
    for precision, unscaled in ((38, 10**38 - 1), (38, 1 - 10**38), (76, 10**76 - 1), (76, 1 - 10**76)):
        width = 16 if precision == 38 else 32
        expression = f"hash_decimal({cpp_text(unscaled.to_bytes(width, 'big', signed=True))}, {precision})"
        yield f"decimal({precision}, 0)", f"{'-' if unscaled < 0 else ''}10^{precision} - 1".replace(
            f"-10^{precision} - 1", f"1 - 10^{precision}"), decimal(unscaled, precision), expression
    for name, text, width, value in (
        ("date32", "2026-11-30", 4, 20787),
        ("time32[ms]", "12:34:56.789", 4, 45_296_789),
        ("time64[us]", "12:34:56.789", 8, 45_296_789_000),
        ("timestamp[us]", "2026-11-30 12:34:56.789", 8, 1_796_042_096_789_000),
        ("timestamp[ns]", "1969-12-31 23:59:59.999999999", 8, -1),
        ("duration[ns]", "1 s", 8, 1_000_000_000),
    ):
        yield name, text, integer(width, value), f"hash_value(static_cast<std::int{8 * width}_t>({value}LL))"
    for text in ("", "a", "ab", "abc", "abcd", "FRANCE", "Grüße", "The quick brown fox jumps over the lazy dog"):
        yield "string", f'"{text}"', text.encode(), f"hash_bytes({cpp_text(text.encode())})"
    for data in (b"\x00", b"\x00\x00\x00\x00", bytes([0xFF] * 5), bytes(range(256))):
        shown = data.hex() if len(data) < 32 else "00 01 ... ff"
        yield "binary", shown, data, f"hash_bytes({cpp_text(data)})"


def combined_cases():
    """Yields: types, values, the keys' bytes, and the C++ expression that hashes the row."""
    one, two = integer(4, 1), integer(4, 2)
    yield "int32, int32", "1, 2", [one, two], "combine_hashes(hash_value(1), hash_value(2))"
    yield "int32, int32", "2, 1", [two, one], "combine_hashes(hash_value(2), hash_value(1))"
    yield "int32, int32", "null, null", [None, None], "combine_hashes(null_hash, null_hash)"
    yield "int32, int32", "1, null", [one, None], "combine_hashes(hash_value(1), null_hash)"
    yield "int32, int32", "null, 1", [None, one], "combine_hashes(null_hash, hash_value(1))"
    yield ("int64, string, double", '42, "FRANCE", -0.0', [integer(8, 42), b"FRANCE", floating("d", 0.0)],
           'combine_hashes(combine_hashes(hash_value(std::int64_t{42}), hash_bytes("FRANCE")), hash_value(-0.0))')


def rows():
    """Yields: types, values, the keys' bytes, C++ expression, for all cases."""
    for kind, value, key, expression in cases():
        yield kind, value, [key], expression
    yield from combined_cases()


def shown_bytes(keys: list) -> str:
    return " + ".join(
        "none" if key is None else "empty" if not key else "00 to ff" if len(key) == 256 else key.hex() for key in keys)


def markdown() -> str:
    lines = ["| type | value | bytes hashed | row hash | of 7 | of 64 | of 1000 |", "| --- | --- | --- | --- | --: | --: | --: |"]
    for kind, value, keys, _ in rows():
        hashed = row_hash(keys)
        lines.append(f"| {kind} | {value} | {shown_bytes(keys)} | {hashed:08x} | {hashed % 7} | {hashed % 64} |"
                     f" {hashed % 1000} |")
    return "\n".join(lines) + "\n"


def include() -> str:
    lines = ["// Copyright (c) 2026 The Earmark authors", "// SPDX-License-Identifier: Apache-2.0", "//",
             "// Made by golden_partitions.py. What, hash as computed, hash as promised, partition of 7, 64 and 1000.",
             "// clang-format off"]
    for kind, value, keys, expression in rows():
        hashed = row_hash(keys)
        what = f"{kind}: {value}".replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{{"{what}", {expression}, 0x{hashed:08x}U, {hashed % 7}, {hashed % 64}, {hashed % 1000}}},')
    return "\n".join(lines + ["// clang-format on"]) + "\n"


def page_with_table(page: str) -> str:
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{markdown()}{END}{after}"


def stale() -> list:
    """Returns: the files that do not hold the golden values."""
    page = PAGE.read_text()
    return [path for path, is_stale in ((PAGE, page != page_with_table(page)),
                                        (INCLUDE, not INCLUDE.exists() or INCLUDE.read_text() != include())) if is_stale]


def main(arguments: list) -> int:
    if arguments == ["--write"]:
        PAGE.write_text(page_with_table(PAGE.read_text()))
        INCLUDE.write_text(include())
        return 0
    for path in stale():
        print(f"{path} is not up to date: run {Path(__file__).name} --write", file=sys.stderr)
    return 1 if stale() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
