# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Inputs of extreme shape. Each case makes its input in a folder and says how to run the command on it."""
import os
from dataclasses import dataclass, field

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

MIB = 1 << 20


@dataclass
class Case:
    inputs: list
    by: str
    partitions: int
    more: list = field(default_factory=list)
    checked: list = None  # columns to compare with DuckDB: default all, at most a few dozen


def random_bytes(rng, size):
    return rng.bytes(size)


def letters(rng, size):
    """Text of `size` bytes that compresses to about three quarters."""
    return (rng.integers(0, 64, size, dtype=numpy.uint8) + 48).tobytes()


def keyed(rng, rows, **columns):
    return pa.table({"k": rng.integers(0, 1 << 40, rows), **columns})


def columns_10000(folder, rng):
    rows = 2000
    makers = [lambda: rng.integers(0, 1 << 30, rows, dtype=numpy.int32), lambda: rng.random(rows),
              lambda: pa.array(rng.integers(0, 50, rows)).cast(pa.string())]
    table = pa.table({f"c{i}": makers[i % 3]() for i in range(10_000)})
    path = os.path.join(folder, "in.parquet")
    pq.write_table(table, path, row_group_size=700)
    return Case([path], "c0", 8, checked=[f"c{i}" for i in range(0, 10_000, 331)])


def strings_1mb(folder, rng):
    path = os.path.join(folder, "in.parquet")
    schema = pa.schema([("k", pa.int64()), ("s", pa.binary())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, 1000, 250):
            writer.write_table(pa.table({"k": pa.array(range(first, first + 250)),
                                         "s": [random_bytes(rng, 1_000_000) for _ in range(250)]}, schema=schema))
    return Case([path], "k", 8)


def strings_1gib(folder, rng):
    path = os.path.join(folder, "in.parquet")
    schema = pa.schema([("k", pa.int64()), ("s", pa.large_binary())])
    sizes = [5, 1 << 30, 1000, (1 << 30) - 7, 0]
    table = pa.table({"k": pa.array(range(len(sizes))), "s": pa.array([bytes(size) for size in sizes],
                                                                     pa.large_binary())}, schema=schema)
    pq.write_table(table, path, use_dictionary=False, compression="snappy", write_statistics=False,
                   write_batch_size=1, data_page_size=1)
    return Case([path], "k", 3, checked=["k"])


def rows_50m(folder, rng):
    rows = 50_000_000
    path = os.path.join(folder, "in.parquet")
    table = pa.table({"k": rng.integers(0, 1 << 40, rows), "v": rng.integers(0, 1000, rows, dtype=numpy.int32)})
    pq.write_table(table, path, row_group_size=rows)
    assert pq.read_metadata(path).num_row_groups == 1
    return Case([path], "k", 16)


def groups_100000(folder, rng):
    rows = 1_000_000
    path = os.path.join(folder, "in.parquet")
    table = keyed(rng, rows, v=rng.random(rows), s=pa.array(rng.integers(0, 500, rows)).cast(pa.string()))
    pq.write_table(table, path, row_group_size=10, write_page_index=False)
    assert pq.read_metadata(path).num_row_groups == 100_000
    return Case([path], "k", 8)


def files_20000(folder, rng):
    for number in range(20_000):
        table = keyed(rng, 20, v=rng.random(20), s=[f"{number}-{i}" for i in range(20)])
        pq.write_table(table, os.path.join(folder, f"{number:05}.parquet"))
    return Case([folder], "k", 8)


def plain_table(rng, rows):
    return keyed(rng, rows, v=rng.random(rows), i=rng.integers(0, 1 << 20, rows, dtype=numpy.int32),
                 s=pa.array(rng.integers(0, 1 << 40, rows)).cast(pa.string()))


def partitions_1(folder, rng):
    path = os.path.join(folder, "in.parquet")
    pq.write_table(plain_table(rng, 3_000_000), path, row_group_size=200_000)
    return Case([path], "k", 1)


def partitions_10000(folder, rng):
    path = os.path.join(folder, "in.parquet")
    pq.write_table(plain_table(rng, 3_000_000), path, row_group_size=200_000)
    return Case([path], "k", 10_000)


def half_one_key(folder, rng):
    rows = 4_000_000
    path = os.path.join(folder, "in.parquet")
    key = rng.integers(0, 1 << 40, rows)
    key[rng.random(rows) < 0.5] = 42
    table = pa.table({"k": key, "v": rng.random(rows), "s": pa.array(key + 1).cast(pa.string())})
    pq.write_table(table, path, row_group_size=150_000)
    return Case([path], "k", 64)


def rows_beyond_2_to_31(folder, rng):
    """One narrow file, named often: a file that is named twice is read twice."""
    rows = 20_000_000
    path = os.path.join(folder, "in.parquet")
    table = pa.table({"k": numpy.repeat(rng.integers(0, 100, rows // 1000, dtype=numpy.int8), 1000)})
    pq.write_table(table, path, row_group_size=2_000_000)
    return Case([path] * 119, "k", 1, checked=[])


def columns_1000_partitions_1000(folder, rng):
    rows = 200_000
    path = os.path.join(folder, "in.parquet")
    table = pa.table({f"c{i}": rng.integers(0, 1000, rows, dtype=numpy.int32) for i in range(200)})
    pq.write_table(table, path, row_group_size=50_000)
    return Case([path], "c0", 1000, checked=["c0", "c7"])


def nested_wide_records(folder, rng):
    """Lists, one of which holds a million elements."""
    lengths = rng.integers(0, 5, 100_000)
    lengths[50_000] = 1_000_000
    offsets = pa.array(numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32))
    lists = pa.ListArray.from_arrays(offsets, pa.array(rng.integers(0, 1 << 40, int(lengths.sum()))))
    path = os.path.join(folder, "in.parquet")
    pq.write_table(keyed(rng, len(lengths), lists=lists), path)
    return Case([path], "k", 8)


SHAPES = {
    "10,000 columns": columns_10000,
    "strings of 1 MB": strings_1mb,
    "strings of 1 GiB": strings_1gib,
    "a row group of 50 M rows": rows_50m,
    "100,000 row groups of 10 rows": groups_100000,
    "20,000 files": files_20000,
    "1 partition": partitions_1,
    "10,000 partitions": partitions_10000,
    "200 columns, 1,000 partitions": columns_1000_partitions_1000,
    "one key in half of the rows": half_one_key,
    "a list of a million elements": nested_wide_records,
    "1.1 x 2^31 rows": rows_beyond_2_to_31,
}
