# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Inputs whose need of memory is hard to tell beforehand: large pages, hungry codecs, large records."""
import os

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from shapes import MIB, Case, keyed, letters

ROWS = 600_000


def written(folder, table, by="k", partitions=8, more=(), **options):
    path = os.path.join(folder, "in.parquet")
    pq.write_table(table, path, **options)
    return Case([path], by, partitions, list(more))


def numbers(rng, rows=ROWS, columns=4):
    return keyed(rng, rows, **{f"v{i}": rng.random(rows) for i in range(columns)})


def small_texts(rng, rows=ROWS):
    return keyed(rng, rows, s=pa.array(rng.integers(0, 1 << 60, rows)).cast(pa.string()))


def wide_numbers(folder, rng):
    return written(folder, numbers(rng, columns=12), row_group_size=100_000)


def large_pages_of_numbers(folder, rng):
    return written(folder, numbers(rng, 4_000_000), row_group_size=4_000_000, data_page_size=64 * MIB,
                   use_dictionary=False, max_rows_per_page=4_000_000)


def large_pages_of_texts(folder, rng):
    return written(folder, small_texts(rng, 2_000_000), row_group_size=2_000_000, data_page_size=64 * MIB,
                   use_dictionary=False, max_rows_per_page=4_000_000)


def large_values(folder, rng):
    texts = [letters(rng, 16 * MIB if i % 40 == 0 else 100) for i in range(400)]
    return written(folder, keyed(rng, 400, s=texts), use_dictionary=False, row_group_size=100)


def large_dictionary(folder, rng):
    words = pa.array([letters(rng, 100) for _ in range(100_000)])
    table = keyed(rng, ROWS, s=words.take(pa.array(rng.integers(0, len(words), ROWS))))
    return written(folder, table, dictionary_pagesize_limit=64 * MIB)


def one_large_record(folder, rng):
    lengths = rng.integers(0, 4, 20_000)
    lengths[7_777] = 400_000
    offsets = pa.array(numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32))
    values = pa.array(rng.integers(0, 1 << 60, int(lengths.sum()))).cast(pa.string())
    return written(folder, keyed(rng, len(lengths), lists=pa.ListArray.from_arrays(offsets, values)))


def with_codec(codec):
    def make(folder, rng):
        table = keyed(rng, ROWS, v=rng.random(ROWS), s=pa.array(rng.integers(0, 1 << 60, ROWS)).cast(pa.string()))
        return written(folder, table, more=["--compression", codec], row_group_size=100_000)
    return make


def large_values_with_codec(codec):
    def make(folder, rng):
        case = large_values(folder, rng)
        case.more = ["--compression", codec]
        return case
    return make


MEMORY_SHAPES = {
    "memory: wide numbers": wide_numbers,
    "memory: pages of 32 MB of numbers": large_pages_of_numbers,
    "memory: pages of 40 MB of texts": large_pages_of_texts,
    "memory: values of 16 MiB": large_values,
    "memory: dictionary of 10 MB": large_dictionary,
    "memory: one large record": one_large_record,
    **{f"memory: {codec}": with_codec(codec) for codec in ("gzip", "brotli", "zstd:3", "zstd:9", "zstd:12", "zstd:19",
                                                          "zstd:22")},
    **{f"memory: values of 16 MiB, {codec}": large_values_with_codec(codec) for codec in ("brotli", "zstd:9",
                                                                                        "zstd:22")},
}
