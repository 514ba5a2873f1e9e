# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""What a file says about its data, and what the result says."""
import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from earmark_command import repartition
from parquet_data import make_table, numbered, part_names, write


def run(tmp_path, table, key="k", count=3, **options):
    path = write(table, tmp_path / "in.parquet", **options)
    repartition(path, key, count, tmp_path / "out")
    return pq.ParquetFile(path), [pq.ParquetFile(tmp_path / "out" / name) for name in part_names(count)]


def test_schema_and_field_metadata_are_kept(tmp_path):
    schema = pa.schema([
        pa.field("row", pa.int64(), nullable=False, metadata={"unit": "none", "PARQUET:field_id": "7"}),
        pa.field("k", pa.string(), metadata={"note": "größe"}),
        pa.field("l", pa.list_(pa.field("element", pa.int32(), metadata={"deep": "yes"})), metadata={"a": "b"})],
        metadata={"owner": "tests", "empty": "", "binary": b"\x00\x01"})
    table = pa.table([pa.array(range(9)), pa.array(list("abcabcabc")), pa.array([[1], [], None] * 3)], schema=schema)
    source, parts = run(tmp_path, table)
    for part in parts:
        assert part.schema_arrow.equals(source.schema_arrow, check_metadata=True)
        assert part.metadata.metadata == source.metadata.metadata
        assert part.schema.equals(source.schema)


def test_field_ids_are_kept_at_every_level(tmp_path):
    def identified(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    schema = pa.schema([identified("k", pa.int64(), 10), identified(
        "s", pa.struct([identified("a", pa.int32(), 12), identified("b", pa.string(), 13)]), 11)])
    table = pa.table([pa.array(range(5)), pa.array([{"a": 1, "b": "x"}] * 5)], schema=schema)
    source, parts = run(tmp_path, table)
    for part in parts:
        assert part.schema_arrow.equals(source.schema_arrow, check_metadata=True)
        assert part.schema_arrow.field("s").type.field("a").metadata[b"PARQUET:field_id"] == b"12"


def test_files_without_an_arrow_schema_keep_theirs(tmp_path):
    source, parts = run(tmp_path, numbered(9, k=pa.array(range(9))), store_schema=False)
    assert all(part.schema.equals(source.schema) and part.metadata.metadata == source.metadata.metadata
               for part in parts)


def test_pandas_metadata_is_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": [1, 2, 3], "c": pandas.Categorical(["a", "b", "a"])}, index=["x", "y", "z"])
    frame.to_parquet(tmp_path / "in.parquet")
    repartition(tmp_path / "in.parquet", "k", 2, tmp_path / "out")
    found = [pandas.read_parquet(tmp_path / "out" / name) for name in part_names(2)]
    assert all(part["c"].dtype == "category" for part in found)
    # Parts with other categories are joined as plain values.
    found = pandas.concat(found).sort_index().astype({"c": "category"})
    pandas.testing.assert_frame_equal(found, frame)


def test_nullability_is_kept(tmp_path):
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64())])
    source, parts = run(tmp_path, pa.table([pa.array(range(5)), pa.array([1, None, 3, None, 5])], schema=schema))
    assert all(part.schema_arrow.equals(source.schema_arrow) for part in parts)
    assert not parts[0].schema_arrow.field("k").nullable and parts[0].schema_arrow.field("v").nullable


def test_the_metadata_is_the_first_files(tmp_path):
    table = numbered(4, k=pa.array(range(4)))
    write(table.replace_schema_metadata({"who": "first"}), tmp_path / "a.parquet")
    write(table.replace_schema_metadata({"who": "second"}), tmp_path / "b.parquet")
    repartition(tmp_path / "?.parquet", "k", 2, tmp_path / "out")
    assert all(pq.read_schema(tmp_path / "out" / name).metadata == {b"who": b"first"} for name in part_names(2))


STATISTICS_FIELDS = [
    pa.field("k", pa.int64()), pa.field("i8", pa.int8()), pa.field("u8", pa.uint8()), pa.field("u32", pa.uint32()),
    pa.field("u64", pa.uint64()), pa.field("i32", pa.int32(), nullable=False), pa.field("f32", pa.float32()),
    pa.field("f64", pa.float64()), pa.field("s", pa.string()), pa.field("b", pa.bool_()), pa.field("d", pa.date32()),
    pa.field("t", pa.timestamp("us", tz="UTC")), pa.field("m", pa.decimal128(12, 2)),
    pa.field("w", pa.decimal128(30, 2)), pa.field("x", pa.binary(3)), pa.field("h", pa.float16()),
    pa.field("n", pa.null()), pa.field("l", pa.list_(pa.int32()))]


def true_statistics(column):
    """(nulls or empty lists, least, greatest) of the values in a column, flattened as Parquet counts them."""
    column = column.combine_chunks()
    values, nulls = column, column.null_count
    if pa.types.is_list(column.type):
        lengths = pc.list_value_length(column)
        values = column.flatten()
        nulls = column.null_count + pc.sum(pc.equal(lengths, 0)).as_py() + values.null_count
    present = [value for value in values.to_pylist() if value is not None]
    present = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    return nulls, min(present, default=None), max(present, default=None)


@pytest.mark.parametrize("dictionary", [True, False])
def test_statistics_of_the_result_are_those_of_its_data(tmp_path, dictionary):
    table = make_table(STATISTICS_FIELDS, 2000, 30)
    _, parts = run(tmp_path, table, use_dictionary=dictionary, row_group_size=600)
    for part in parts:
        for group in range(part.metadata.num_row_groups):
            check_statistics(part, group)


def check_statistics(part, group):
    data = part.read_row_group(group)
    for number, name in enumerate(data.schema.names):
        chunk = part.metadata.row_group(group).column(number)
        nulls, least, greatest = true_statistics(data.column(name))
        statistics = chunk.statistics
        if pa.types.is_null(data.schema.field(name).type):
            continue
        assert statistics is not None and statistics.null_count == nulls, (name, statistics)
        if not statistics.has_min_max:
            assert least is None, f"no bounds for {name}"
            continue
        # Strings may be cut to a bound; everything else is exact.
        if data.schema.field(name).type == pa.float16():
            continue
        assert statistics.min <= least and greatest <= statistics.max, (name, statistics)
        if not isinstance(least, (str, bytes)):
            assert (statistics.min, statistics.max) == (least, greatest), (name, statistics)


def test_the_result_has_a_page_index(tmp_path):
    _, parts = run(tmp_path, make_table(STATISTICS_FIELDS, 2000, 31))
    for part in parts:
        group = part.metadata.row_group(0)
        for number in range(part.metadata.num_columns):
            chunk = group.column(number)
            assert chunk.has_offset_index, chunk.path_in_schema
            assert chunk.has_column_index or chunk.path_in_schema in ("n",), chunk.path_in_schema


def test_readers_that_skip_by_the_page_index_see_the_same_rows(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table = numbered(50_000, k=pa.array([i * 7919 % 50_000 for i in range(50_000)]),
                     s=pa.array([f"{i * 31 % 5000:05}" for i in range(50_000)]))
    run(tmp_path, table, key="s", data_page_size=4096)
    connection = duckdb.connect()
    polars = pytest.importorskip("polars")
    for low in (0, 1234, 49_990):
        where = f"k BETWEEN {low} AND {low + 20}"
        wanted = connection.execute(f"SELECT sum(row) FROM '{tmp_path}/in.parquet' WHERE {where}").fetchone()[0]
        assert connection.execute(
            f"SELECT sum(row) FROM '{tmp_path}/out/*.parquet' WHERE {where}").fetchone()[0] == wanted
        frame = polars.scan_parquet(f"{tmp_path}/out/*.parquet").filter(polars.col("k").is_between(low, low + 20))
        assert frame.collect()["row"].sum() == wanted
        found = pq.read_table(tmp_path / "out", filters=[("k", ">=", low), ("k", "<=", low + 20)])
        assert pc.sum(found.column("row")).as_py() == wanted


def test_statistics_without_a_page_of_values_or_with_nans_do_not_mislead(tmp_path):
    """Bounds may not exclude rows: of NaNs there are none, of zeros both signs are inside."""
    table = numbered(8, k=pa.array([1] * 8), nan=pa.array([math.nan] * 8), zero=pa.array([0.0, -0.0] * 4),
                     mixed=pa.array([math.nan, 1.0, -1.0, math.nan] * 2), null=pa.array([None] * 8, pa.float64()))
    _, parts = run(tmp_path, table, count=1)
    chunk = {parts[0].metadata.row_group(0).column(c).path_in_schema: parts[0].metadata.row_group(0).column(c)
             for c in range(parts[0].metadata.num_columns)}
    assert not chunk["nan"].statistics.has_min_max and not chunk["null"].statistics.has_min_max
    assert chunk["null"].statistics.null_count == 8
    mixed, zero = chunk["mixed"].statistics, chunk["zero"].statistics
    assert (mixed.min, mixed.max) == (-1.0, 1.0)
    assert math.copysign(1, zero.min) == -1 and math.copysign(1, zero.max) == 1
