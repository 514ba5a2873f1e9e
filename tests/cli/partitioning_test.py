# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Where rows go, in which order, and in what row groups."""
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reference_partition
from earmark_command import repartition, unsanitized
from parquet_data import check_result, numbered, part_names, read_parts, write

FULL_GROUP = 122_880


def homes(output, count):
    """The partition of each row."""
    return {row: number for number, part in enumerate(read_parts(output, count))
            for row in part.column("row").to_pylist()}


def test_the_reference_agrees_with_published_values():
    """MurmurHash3 x86_32 with seed 0, as its author's and libcudf's implementations have it."""
    assert reference_partition.murmur3(b"") == 0
    assert reference_partition.murmur3(b"test") == 0xBA6BD213
    assert reference_partition.murmur3(b"Hello, world!") == 0xC0363E43
    assert reference_partition.murmur3(b"The quick brown fox jumps over the lazy dog") == 0x2E4FF723
    assert reference_partition.murmur3(b"\0\0\0\0") == 0x2362F9DE


@pytest.mark.parametrize("count", [1, 2, 3, 64, 255, 256, 257, 1000])
def test_every_row_goes_where_the_function_says(tmp_path, count):
    rng = random.Random(count)
    table = numbered(4000, k=pa.array([rng.choice([None, rng.randrange(10 ** 12)]) for _ in range(4000)]),
                     s=pa.array([f"key {rng.randrange(500)}" for _ in range(4000)]))
    repartition(write(table, tmp_path / "in.parquet", row_group_size=1500), "k,s", count, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k", "s"], count)


def test_the_order_of_keys_matters_and_each_order_is_kept_to(tmp_path):
    table = numbered(500, a=pa.array([i % 17 for i in range(500)]), b=pa.array([i % 13 for i in range(500)]))
    path = write(table, tmp_path / "in.parquet")
    for keys in (["a", "b"], ["b", "a"], ["a"], ["b", "row", "a"]):
        output = tmp_path / "-".join(keys)
        repartition(path, ",".join(keys), 7, output)
        check_result(table, output, keys, 7)


def test_nulls_go_together(tmp_path):
    table = numbered(300, k=pa.array([None if i % 3 == 0 else i for i in range(300)]))
    repartition(write(table, tmp_path / "in.parquet"), "k", 16, tmp_path / "out")
    found = homes(tmp_path / "out", 16)
    assert {found[i] for i in range(0, 300, 3)} == {reference_partition.NULL_HASH % 16}


@pytest.mark.parametrize("kind, bits, nans", [
    (pa.float64(), pa.uint64(), [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0x7FF0000000000001]),
    (pa.float32(), pa.uint32(), [0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001]),
    (pa.float16(), pa.uint16(), [0x7E00, 0xFE00, 0x7E01, 0x7C01])], ids=["double", "float", "half"])
def test_nans_go_together_and_so_do_zeros(tmp_path, kind, bits, nans):
    zeros = [0, 1 << (bits.bit_width - 1)]
    table = numbered(60, k=pa.array((nans + zeros) * 10, bits).view(kind))
    repartition(write(table, tmp_path / "in.parquet"), "k", 101, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 101)
    found = homes(tmp_path / "out", 101)
    assert len({found[row] for row in range(60) if row % 6 < 4}) == 1
    assert len({found[row] for row in range(60) if row % 6 >= 4}) == 1


def test_one_key_goes_to_one_file_and_the_others_are_empty(tmp_path):
    table = numbered(1000, k=pa.array(["same"] * 1000))
    repartition(write(table, tmp_path / "in.parquet", row_group_size=100), "k", 10, tmp_path / "out")
    parts = check_result(table, tmp_path / "out", ["k"], 10)
    assert sorted(part.num_rows for part in parts) == [0] * 9 + [1000]


def test_more_files_than_rows_leave_empty_files_with_the_schema(tmp_path):
    table = numbered(3, k=pa.array([1, 2, 3]))
    summary = repartition(write(table, tmp_path / "in.parquet"), "k", 500, tmp_path / "out")
    assert summary["files"] == 500
    check_result(table, tmp_path / "out", ["k"], 500)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("memory", [None, "least"])
def test_threads_and_memory_change_nothing_in_the_rows(tmp_path, threads, memory):
    rng = random.Random(5)
    rows = 60_000
    table = numbered(rows, k=pa.array([rng.randrange(3000) for _ in range(rows)]),
                     s=pa.array([f"{rng.random()}" for _ in range(rows)]))
    path = write(table, tmp_path / "in.parquet", row_group_size=9_000)
    more = ["--threads", threads]
    if memory:
        repartition(path, "k", 8, tmp_path / "out", *more, memory=least_memory(path, tmp_path, threads))
    else:
        repartition(path, "k", 8, tmp_path / "out", *more)
    check_result(table, tmp_path / "out", ["k"], 8)


def least_memory(path, tmp_path, threads):
    from earmark_command import earmark, repartition_arguments
    outcome = earmark(*repartition_arguments(path, "k", 8, tmp_path / "out", "1MiB"), "--threads", threads, "--json")
    assert outcome.code == 4, outcome
    # Under a sanitizer the process itself grows; twice the least is still little.
    import earmark_command
    return str(outcome.error["least_bytes"] * (2 if earmark_command.SANITIZED else 1))


# Row groups.

def make_narrow(path, rows, row_group_size):
    """Four million rows without four million Python objects."""
    import numpy
    keys = numpy.arange(rows, dtype=numpy.int64) * 2654435761 % 1000003
    table = pa.table({"row": pa.array(numpy.arange(rows, dtype=numpy.int64)), "k": pa.array(keys),
                      "f": pa.array((keys % 997).astype(numpy.float32))})
    pq.write_table(table, path, row_group_size=row_group_size)
    return table


def group_rows(path):
    metadata = pq.read_metadata(path)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


@unsanitized
@pytest.mark.parametrize("row_group_size", [1_000_000, 30_000])
@pytest.mark.parametrize("memory", ["512MiB", "least"])
def test_row_groups_are_full_at_every_limit(tmp_path, row_group_size, memory):
    rows, count = 4_000_000, 4
    path = tmp_path / "in.parquet"
    make_narrow(path, rows, row_group_size)
    limit = least_memory(path, tmp_path, 2) if memory == "least" else memory
    repartition(path, "k", count, tmp_path / "out", "--threads", 2, memory=limit)
    total = 0
    for name in part_names(count):
        found = group_rows(tmp_path / "out" / name)
        total += sum(found)
        assert all(one >= FULL_GROUP for one in found[:-1]), found
    assert total == rows
    check_with_duckdb(path, tmp_path / "out", rows)


def check_with_duckdb(source, output, rows):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    digest = "count(*), sum(hash(row, k, f)::HUGEINT), sum(row)"
    assert (connection.execute(f"SELECT {digest} FROM '{source}'").fetchone() ==
            connection.execute(f"SELECT {digest} FROM '{output}/*.parquet'").fetchone())
    spread = connection.execute(f"SELECT count(*) FROM (SELECT DISTINCT k, filename FROM "
                                f"read_parquet('{output}/*.parquet', filename=true))").fetchone()[0]
    keys = connection.execute(f"SELECT count(DISTINCT k) FROM '{source}'").fetchone()[0]
    assert spread == keys, "a key is in more than one file"
    unordered = connection.execute(
        f"SELECT count(*) FROM (SELECT row < lag(row) OVER (PARTITION BY filename ORDER BY file_row_number) AS back "
        f"FROM read_parquet('{output}/*.parquet', filename=true, file_row_number=true)) WHERE back").fetchone()[0]
    assert unordered == 0, "the order of the input is lost"


@unsanitized
def test_a_row_group_is_full_at_the_bytes_that_are_asked_for(tmp_path):
    """`--row-group-bytes` may close a group before 122,880 rows; no group but the last may be much smaller."""
    rows, wanted = 1_000_000, 1 << 20
    make_narrow(tmp_path / "in.parquet", rows, 100_000)
    repartition(tmp_path / "in.parquet", "k", 2, tmp_path / "out", "--row-group-bytes", "1MiB")
    row_bytes = 8 + 8 + 4
    for name in part_names(2):
        found = group_rows(tmp_path / "out" / name)
        assert len(found) > 1, "row groups ignore --row-group-bytes"
        assert all(one * row_bytes >= wanted / 2 for one in found[:-1]), found
    check_with_duckdb(tmp_path / "in.parquet", tmp_path / "out", rows)


@unsanitized
def test_the_output_is_hardly_larger_than_the_input(tmp_path):
    make_narrow(tmp_path / "in.parquet", 1_000_000, 250_000)
    summary = repartition(tmp_path / "in.parquet", "k", 4, tmp_path / "out")
    assert summary["bytes_out"] <= 1.15 * summary["bytes_in"], summary


def test_skewed_keys_come_through(tmp_path):
    rng = random.Random(3)
    table = numbered(50_000, k=pa.array([0 if rng.random() < 0.95 else rng.randrange(1, 50) for _ in range(50_000)]))
    repartition(write(table, tmp_path / "in.parquet", row_group_size=5000), "k", 16, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 16)


