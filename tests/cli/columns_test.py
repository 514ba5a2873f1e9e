# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""`--columns`: the output has exactly the columns that were named, and the rows are where they are without it."""
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import earmark_measured, expect_refusal, repartition, repartition_arguments, unsanitized
from parquet_data import numbered, part_names, write

ROWS = 900


def some_table():
    fields = [pa.field("a", pa.int32(), metadata={"note": "of a"}), pa.field("d", pa.dictionary(pa.int8(), pa.string())),
              pa.field("t", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.string()))])),
              pa.field("u", pa.duration("s")), pa.field("z", pa.timestamp("us", "Europe/Berlin"))]
    columns = [pa.array([i % 50 for i in range(ROWS)], pa.int32()),
               pa.array([f"w{i % 7}" for i in range(ROWS)]).dictionary_encode().cast(fields[1].type),
               pa.array([{"x": i, "l": ["q"] * (i % 3)} for i in range(ROWS)], fields[2].type),
               pa.array(range(ROWS), pa.int64()).cast(fields[3].type),
               pa.array(range(ROWS), pa.int64()).view(fields[4].type)]
    return pa.table(columns, schema=pa.schema(fields, metadata={"origin": "test"}))


@pytest.fixture
def source(tmp_path):
    return write(some_table(), tmp_path / "in.parquet", row_group_size=200)


def read_all(folder, count):
    assert sorted(os.listdir(folder)) == part_names(count)
    return [pq.ParquetFile(folder / name).read() for name in part_names(count)]


@pytest.mark.parametrize("columns", [["a"], ["t"], ["z", "a"], ["u", "t", "d"], ["z", "u", "t", "d", "a"]])
def test_the_output_is_the_full_one_with_fewer_columns(tmp_path, source, columns):
    repartition(source, "a", 4, tmp_path / "full")
    summary = repartition(source, "a", 4, tmp_path / "out", "--columns", ",".join(columns), "--verify")
    assert summary["rows"] == ROWS and summary["verified"] is True
    for full, part in zip(read_all(tmp_path / "full", 4), read_all(tmp_path / "out", 4)):
        wanted = [name for name in full.schema.names if name in columns]
        assert part.schema.names == wanted, "the order is the input's"
        assert part.equals(full.select(wanted), check_metadata=True)


def test_a_key_need_not_be_written(tmp_path, source):
    repartition(source, "a,z", 3, tmp_path / "full")
    repartition(source, "a,z", 3, tmp_path / "out", "--columns", "u", "--verify")
    for full, part in zip(read_all(tmp_path / "full", 3), read_all(tmp_path / "out", 3)):
        assert part.equals(full.select(["u"]))


def test_columns_may_be_named_in_several_lists(tmp_path, source):
    repartition(source, "a", 2, tmp_path / "out", "--columns", "z", "--columns", "a,d")
    assert read_all(tmp_path / "out", 2)[0].schema.names == ["a", "d", "z"]


def test_an_unknown_column_is_named(tmp_path, source):
    for columns, name in (("nope", "nope"), ("a,A", "A"), ("t.x", "t.x")):
        arguments = [*repartition_arguments(source, "a", 2, tmp_path / "out"), "--columns", columns]
        error = expect_refusal("input", arguments, tmp_path, f"unknown column '{name}'")
        assert error["column"] == name and error["file"] == source


def test_an_ambiguous_column_is_named(tmp_path):
    table = pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["k", "d", "d"])
    path = write(table, tmp_path / "in.parquet")
    arguments = [*repartition_arguments(path, "k", 2, tmp_path / "out"), "--columns", "d"]
    assert expect_refusal("input", arguments, tmp_path, "ambiguous")["column"] == "d"


def test_a_column_named_twice_is_refused(tmp_path, source):
    arguments = [*repartition_arguments(source, "a", 2, tmp_path / "out"), "--columns", "a,z,a"]
    expect_refusal("usage", arguments, tmp_path, "twice")


def test_a_key_that_is_not_in_the_input_is_refused_all_the_same(tmp_path, source):
    arguments = [*repartition_arguments(source, "nope", 2, tmp_path / "out"), "--columns", "a"]
    expect_refusal("input", arguments, tmp_path, "unknown key column 'nope'")


def test_metadata_that_describes_missing_columns_is_left_out(tmp_path):
    spark = json.dumps({"type": "struct", "fields": [{"name": "row", "type": "long", "nullable": True, "metadata": {}}]})
    table = numbered(5, k=pa.array(range(5))).replace_schema_metadata(
        {"org.apache.spark.sql.parquet.row.metadata": spark, "own": "kept", "parquet.avro.schema": "{}", "geo": "{}"})
    path = write(table, tmp_path / "in.parquet")
    repartition(path, "k", 1, tmp_path / "out", "--columns", "k")
    metadata = pq.read_metadata(tmp_path / "out" / "part-00000.parquet").metadata
    described = {b"org.apache.spark.sql.parquet.row.metadata", b"parquet.avro.schema", b"geo"}
    assert metadata[b"own"] == b"kept" and not described & set(metadata)
    repartition(path, "k", 1, tmp_path / "all")
    metadata = pq.read_metadata(tmp_path / "all" / "part-00000.parquet").metadata
    assert described <= set(metadata)


def test_field_ids_stay(tmp_path):
    schema = pa.schema([pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
                        for number, name in enumerate("abc", 7)])
    path = write(pa.table([pa.array([1, 2])] * 3, schema=schema), tmp_path / "in.parquet")
    repartition(path, "a", 1, tmp_path / "out", "--columns", "b,c", "--verify")
    part = pq.ParquetFile(tmp_path / "out" / "part-00000.parquet").schema_arrow
    assert [part.field(name).metadata[b"PARQUET:field_id"] for name in "bc"] == [b"8", b"9"]


@unsanitized
def test_a_large_key_that_is_not_written_counts_for_the_least_memory(tmp_path):
    """The key's pages must be decoded although they are not written."""
    table = pa.table({"v": pa.array(range(12)), "k": pa.array([chr(97 + i) * (12 << 20) for i in range(12)])})
    path = write(table, tmp_path / "in.parquet", row_group_size=4, use_dictionary=False, compression="none")
    arguments = [*repartition_arguments(path, "k", 2, tmp_path / "out", "1MiB"), "--columns", "v", "--json"]
    least = expect_refusal("memory", arguments[:-1], tmp_path)["least_bytes"]
    outcome = earmark_measured(tmp_path, *repartition_arguments(path, "k", 2, tmp_path / "out", least),
                               "--columns", "v", "--verify", "--json")
    assert outcome.code == 0 and outcome.peak_bytes <= least, (outcome, outcome.peak_bytes, least)
