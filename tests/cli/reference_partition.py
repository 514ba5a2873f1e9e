# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Which partition a row goes to, written a second time from the specification, in plain Python.

MurmurHash3 x86_32 with seed 0 over the value's little-endian bytes, columns combined from left to right, modulo N.
"""
import math
import struct

import pyarrow as pa

NULL_HASH = 0xFFFFFFFF
MASK = 0xFFFFFFFF


def rotate_left(word, bits):
    return ((word << bits) | (word >> (32 - bits))) & MASK


def murmur3(data, seed=0):
    def scramble(block):
        return (rotate_left((block * 0xCC9E2D51) & MASK, 15) * 0x1B873593) & MASK

    hashed = seed
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        hashed ^= scramble(int.from_bytes(data[at:at + 4], "little"))
        hashed = (rotate_left(hashed, 13) * 5 + 0xE6546B64) & MASK
    if len(data) > whole:
        hashed ^= scramble(int.from_bytes(data[whole:], "little"))
    hashed ^= len(data) & MASK
    hashed = ((hashed ^ (hashed >> 16)) * 0x85EBCA6B) & MASK
    hashed = ((hashed ^ (hashed >> 13)) * 0xC2B2AE35) & MASK
    return hashed ^ (hashed >> 16)


def combine(left, right):
    return left ^ ((right + 0x9E3779B9 + (left << 6) + (left >> 2)) & MASK)


def integer(value, width):
    return (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")


def floating(value, code):
    if math.isnan(value):
        return {"f": b"\x00\x00\xc0\x7f", "d": b"\x00" * 6 + b"\xf8\x7f"}[code]
    return struct.pack("<" + code, value + 0.0)  # -0.0 + 0.0 is 0.0


def decimal_width(precision):
    return 4 if precision <= 9 else 8 if precision <= 18 else 16 if precision <= 38 else 32


def unscaled(value, scale):
    """The integer behind a decimal, exactly: decimal arithmetic would round at 28 digits."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def key_bytes(value, kind):
    """The bytes that are hashed for a value that is not null, from `Array.to_pylist` or, for times, its integer."""
    types = pa.types
    if types.is_dictionary(kind):
        return key_bytes(value, kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return key_bytes(value if not hasattr(value, "bytes") else value.bytes, kind.storage_type)
    if types.is_boolean(kind):
        return bytes([value])
    if types.is_float16(kind) or types.is_float32(kind):
        return floating(float(value), "f")
    if types.is_float64(kind):
        return floating(value, "d")
    if types.is_decimal(kind):
        return integer(unscaled(value, kind.scale), decimal_width(kind.precision))
    if types.is_integer(kind):
        return integer(value, kind.bit_width // 8)
    if types.is_temporal(kind):
        return temporal_bytes(value, kind)
    return value.encode() if isinstance(value, str) else bytes(value)


def temporal_bytes(value, kind):
    """`value` is the integer that Arrow stores. Parquet has no seconds: it stores milliseconds instead."""
    seconds = getattr(kind, "unit", None) == "s" and not pa.types.is_duration(kind)
    return integer(value * 1000 if seconds else value, kind.bit_width // 8)


def plain_values(column):
    """The values of a column as Python objects, dates and times as their integers."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.to_pylist()


def column_hashes(column):
    kind = column.type
    return [NULL_HASH if value is None else murmur3(key_bytes(value, kind)) for value in plain_values(column)]


def partitions(table, keys, count):
    """The partition of each row of a table."""
    columns = [column_hashes(table.column(key)) for key in keys]
    hashes = columns[0]
    for column in columns[1:]:
        hashes = [combine(left, right) for left, right in zip(hashes, column)]
    return [hashed % count for hashed in hashes]


assert murmur3(b"test") == 0xBA6BD213 and murmur3(b"") == 0
