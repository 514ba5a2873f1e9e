# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of every type, made from a seed, and the comparison of a result with its input."""
import datetime
import decimal
import inspect
import math
import os
import random
import struct
import tempfile
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

import reference_partition

EPOCH = datetime.date(1970, 1, 1)


def random_text(rng, most=24):
    letters = "abcdefghijklmnopqrstuvwxyzäöüß名前😀 ,\"'\n"
    return "".join(rng.choice(letters) for _ in range(rng.randrange(most)))


def random_value(rng, kind):
    """A value for `pa.array(..., type=kind)`; never None."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return random_value(rng, kind.storage_type)
    if types.is_null(kind):
        return None
    if types.is_boolean(kind):
        return rng.random() < 0.5
    if types.is_integer(kind):
        low, high = integer_range(kind)
        return rng.choice([low, high, 0, rng.randint(low, high), rng.randint(max(low, -50), min(high, 50))])
    if types.is_floating(kind):
        value = rng.choice([0.0, 1.5, -2.25, rng.uniform(-1000, 1000), math.inf, -math.inf])
        return rounded(value, kind)
    if types.is_decimal(kind):
        digits = rng.randint(1, kind.precision)
        number = rng.randint(-(10 ** digits - 1), 10 ** digits - 1)
        with decimal.localcontext(decimal.Context(prec=100)):
            return decimal.Decimal(number).scaleb(-kind.scale)
    if types.is_date(kind):
        return EPOCH + datetime.timedelta(days=rng.randint(-200_000, 200_000))
    if types.is_time(kind):
        ticks = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}[kind.unit]
        return rng.randrange(ticks)
    if types.is_timestamp(kind) or types.is_duration(kind):
        most = {"s": 2 ** 33, "ms": 2 ** 43, "us": 2 ** 53, "ns": 2 ** 62}[kind.unit]
        return rng.choice([0, -1, rng.randint(-most, most), rng.randint(-100, 100)])
    if types.is_fixed_size_binary(kind):
        return rng.randbytes(kind.byte_width)
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        return random_text(rng)
    if types.is_binary(kind) or types.is_large_binary(kind) or kind == pa.binary_view():
        return rng.randbytes(rng.randrange(20))
    if types.is_dictionary(kind):
        return random_value(random.Random(rng.randrange(20)), kind.value_type)
    if types.is_struct(kind):
        return {field.name: random_field(rng, field) for field in kind}
    if types.is_map(kind):
        keys = {repr(key): key for key in (random_value(rng, kind.key_type) for _ in range(rng.randrange(4)))}
        return [(key, random_field(rng, kind.item_field)) for key in keys.values()]
    if types.is_fixed_size_list(kind):
        return [random_field(rng, kind.value_field) for _ in range(kind.list_size)]
    return [random_field(rng, kind.value_field) for _ in range(rng.choice([0, 0, 1, 2, 5]))]


def random_field(rng, field):
    return None if field.nullable and rng.random() < 0.25 else random_value(rng, field.type)


def integer_range(kind):
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2 ** bits - 1)


def rounded(value, kind):
    if pa.types.is_float64(kind) or math.isinf(value):
        return value
    code = "e" if pa.types.is_float16(kind) else "f"
    return struct.unpack(code, struct.pack(code, value))[0]


def make_array(rng, field, rows):
    values = [random_field(rng, field) for _ in range(rows)]
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, type=kind.storage_type))
    return array_of(values, kind)


def array_of(values, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(values, type=kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_temporal(kind) and not pa.types.is_date(kind):
        storage = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, type=storage).cast(kind) if not pa.types.is_timestamp(kind) else pa.array(
            values, type=storage).view(kind)
    return pa.array(values, type=kind)


def make_table(fields, rows, seed):
    """A table of these fields and a first column `row` that numbers the rows."""
    rng = random.Random(seed)
    columns = [pa.array(range(rows), type=pa.int64())] + [make_array(rng, field, rows) for field in fields]
    return pa.table(columns, schema=pa.schema([pa.field("row", pa.int64(), nullable=False), *fields]))


def part_names(count):
    return [f"part-{number:05}.parquet" for number in range(count)]


def read_parts(output, count):
    """The tables of a result, one a partition; checks that there is nothing else."""
    assert sorted(os.listdir(output)) == part_names(count)
    return [pq.ParquetFile(os.path.join(output, name)).read() for name in part_names(count)]


def rows_of(table):
    """Each row as text; NaNs are equal, -0.0 and 0.0 are not."""
    columns = [[repr(value) for value in comparable(column).to_pylist()] for column in table.columns]
    return list(zip(*columns)) if columns else []


def comparable(column):
    kind = column.type
    if pa.types.is_dictionary(kind):
        return comparable(column.cast(kind.value_type))
    # Dates and times beyond the range of Python's objects compare as integers.
    if pa.types.is_temporal(kind):
        return column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column


def check_result(table, output, keys, count, partition_function=True):
    """Expects exactly the rows of `table` (with its column `row`) in `count` files, each where its key belongs."""
    parts = read_parts(output, count)
    expected = pq_view(table)
    for part in parts:
        assert part.schema.equals(expected.schema, check_metadata=False), (part.schema, expected.schema)
        numbers = part.column("row").to_pylist()
        assert numbers == sorted(numbers), "the order of the input is lost"
    seen = [row for part in parts for row in rows_of(part)]
    assert sorted(seen) == sorted(rows_of(expected)), "rows differ"
    if partition_function:
        wanted = reference_partition.partitions(expected, keys, count)
        homes = dict(zip(expected.column("row").to_pylist(), wanted))
        for number, part in enumerate(parts):
            assert {homes[row] for row in part.column("row").to_pylist()} <= {number}, "a row is in a wrong file"
    return parts


def pq_view(table):
    """The table as it comes back from Parquet, which some types change on their way (seconds, dates of 64 bits)."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).read()


def write(table, path, **options):
    """Writes a table; returns the path as text."""
    pq.write_table(table, path, **options)
    return str(path)


def kept_file(name, make):
    """The path of a big file that `make(path)` makes once, for all tests and processes of a build.

    It lies in the folder EARMARK_TEST_DATA, under a name that changes with the code that makes it.
    """
    folder = os.environ.get("EARMARK_TEST_DATA", os.path.join(tempfile.gettempdir(), "earmark-test-data"))
    os.makedirs(folder, exist_ok=True)
    version = zlib.crc32(inspect.getsource(make).encode())
    path = os.path.join(folder, f"{name}-{version:08x}.parquet")
    if not os.path.exists(path):
        draft = f"{path}.{os.getpid()}"
        make(draft)
        try:
            os.link(draft, path)  # never over a file that another process reads already
        except FileExistsError:
            pass
        os.unlink(draft)
    return path


def numbered(rows, **columns):
    """A table with a column `row` and the given ones."""
    return pa.table({"row": pa.array(range(rows), type=pa.int64()), **columns})
