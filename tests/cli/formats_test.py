# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever a Parquet file is written with: codecs, page versions, encodings, sizes, and other writers."""
import importlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import repartition
from parquet_data import check_result, make_table, numbered, part_names, pq_view, rows_of, write

ROWS = 3000
FIELDS = [pa.field("k", pa.int64()), pa.field("i", pa.int32(), nullable=False), pa.field("s", pa.string()),
          pa.field("f", pa.float64()), pa.field("l", pa.list_(pa.int16())), pa.field("x", pa.binary(5)),
          pa.field("b", pa.bool_())]


def run(tmp_path, table=None, *more, keys=("k",), **options):
    table = make_table(FIELDS, ROWS, 20) if table is None else table
    path = write(table, tmp_path / "in.parquet", **options)
    repartition(path, ",".join(keys), 4, tmp_path / "out", *more)
    check_result(table, tmp_path / "out", list(keys), 4)
    return path


def codecs_of(path):
    metadata = pq.read_metadata(path)
    return {metadata.row_group(g).column(c).compression for g in range(metadata.num_row_groups)
            for c in range(metadata.num_columns)}


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_a_codec_is_read_and_kept(tmp_path, codec):
    path = run(tmp_path, compression=codec)
    for name in part_names(4):
        assert codecs_of(tmp_path / "out" / name) == codecs_of(path)


def test_each_column_keeps_its_own_codec(tmp_path):
    codecs = {"k": "zstd", "i": "none", "s": "gzip", "f": "brotli", "row": "lz4", "l.list.element": "snappy",
              "x": "snappy", "b": "none"}
    path = run(tmp_path, compression=codecs)
    wanted = [pq.read_metadata(path).row_group(0).column(c).compression for c in range(8)]
    for name in part_names(4):
        group = pq.read_metadata(tmp_path / "out" / name).row_group(0)
        assert [group.column(c).compression for c in range(8)] == wanted


@pytest.mark.parametrize("option, codec", [
    ("snappy", "SNAPPY"), ("zstd", "ZSTD"), ("zstd:7", "ZSTD"), ("lz4", "LZ4"), ("gzip", "GZIP"), ("brotli", "BROTLI"),
    ("none", "UNCOMPRESSED")])
def test_the_codec_can_be_chosen(tmp_path, option, codec):
    run(tmp_path, None, "--compression", option, compression="gzip")
    for name in part_names(4):
        assert codecs_of(tmp_path / "out" / name) == {codec}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_both_data_page_versions_are_read(tmp_path, version, codec, dictionary):
    run(tmp_path, data_page_version=version, compression=codec, use_dictionary=dictionary, row_group_size=700)


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
def test_all_format_versions_are_read(tmp_path, version):
    run(tmp_path, version=version)


@pytest.mark.parametrize("encodings", [
    {"k": "DELTA_BINARY_PACKED", "i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"},
    {"s": "DELTA_LENGTH_BYTE_ARRAY", "x": "DELTA_BYTE_ARRAY"},
    {"f": "BYTE_STREAM_SPLIT", "k": "BYTE_STREAM_SPLIT", "i": "BYTE_STREAM_SPLIT", "x": "BYTE_STREAM_SPLIT"},
    {"b": "RLE", "s": "PLAIN", "k": "PLAIN"}], ids=["delta", "delta length", "stream split", "plain"])
@pytest.mark.parametrize("keys", [("k",), ("s", "i"), ("x", "f"), ("b",)], ids=["k", "s,i", "x,f", "b"])
def test_an_encoding_is_read(tmp_path, encodings, keys):
    run(tmp_path, use_dictionary=False, column_encoding=encodings, row_group_size=1100, keys=keys)


def test_tiny_pages_and_row_groups_are_read(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run(tmp_path / "a", data_page_size=64, write_batch_size=8)
    run(tmp_path / "b", row_group_size=7)


def test_a_dictionary_that_overflows_into_plain_pages_is_read(tmp_path):
    table = numbered(ROWS, k=pa.array([i % 50 if i < 100 else i for i in range(ROWS)]),
                     s=pa.array([f"value {i % 50 if i < 100 else i}" for i in range(ROWS)]))
    path = run(tmp_path, table, dictionary_pagesize_limit=256, data_page_size=512, write_batch_size=64)
    encodings = pq.read_metadata(path).row_group(0).column(2).encodings
    assert "PLAIN" in encodings and "RLE_DICTIONARY" in encodings


@pytest.mark.parametrize("values", [["A"], ["A", "N", "R"], ["", "x"], [1.5], [b"\0", b"\1"], [7, 8]], ids=repr)
def test_dictionaries_of_few_and_short_values_are_read(tmp_path, values):
    table = numbered(ROWS, v=pa.array([values[i % len(values)] for i in range(ROWS)]))
    run(tmp_path, table, keys=("v",), row_group_size=500)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("lists", [[[], [1.0], []], [[], [], []], [None, [1.0, 2.0], None], [[1.0] * 5, [], [2.0] * 3]],
                         ids=repr)
def test_pages_of_one_entry_are_read(tmp_path, dictionary, version, lists):
    """Pages without a value, and records that go on in the next page."""
    table = numbered(len(lists), v=pa.array(lists, pa.list_(pa.field("element", pa.float32(), nullable=False))))
    run(tmp_path, table, keys=("row",), use_dictionary=dictionary, data_page_version=version, data_page_size=1,
        write_batch_size=1)


def test_row_groups_with_and_without_a_dictionary_are_read(tmp_path):
    table = make_table(FIELDS, ROWS, 21)
    for number, dictionary in enumerate([True, False, True]):
        write(table.slice(number * 1000, 1000), tmp_path / f"{number}.parquet", use_dictionary=dictionary)
    repartition(tmp_path / "?.parquet", "s", 4, tmp_path / "out")
    check_result(table, tmp_path / "out", ["s"], 4)


@pytest.mark.parametrize("statistics, page_index", [(True, True), (True, False), (False, False)])
def test_files_with_and_without_statistics_and_page_index_are_read(tmp_path, statistics, page_index):
    run(tmp_path, write_statistics=statistics, write_page_index=page_index)


def test_checksums_of_pages_are_fine(tmp_path):
    run(tmp_path, write_page_checksum=True)


def test_files_that_are_sorted_or_carry_bloom_filters_are_fine(tmp_path):
    run(tmp_path, sorting_columns=[pq.SortingColumn(0)])


# Other writers, and other readers.

def from_arrow(name, table, path):
    """Writes a flat table with another engine."""
    if name == "polars":
        importlib.import_module("polars").from_arrow(table).write_parquet(path, row_group_size=1000)
    elif name == "duckdb":
        connection = importlib.import_module("duckdb").connect()
        connection.register("t", table)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    else:
        table.to_pandas().to_parquet(path)


FLAT = [pa.field("k", pa.int64()), pa.field("s", pa.string()), pa.field("f", pa.float64()), pa.field("d", pa.date32()),
        pa.field("t", pa.timestamp("us")), pa.field("b", pa.bool_()), pa.field("i", pa.int32()),
        pa.field("m", pa.decimal128(12, 3)), pa.field("l", pa.list_(pa.int64()))]


def in_range(table):
    """Dates and times that every engine can say."""
    days = pa.array([None if i % 7 == 0 else i % 20_000 for i in range(table.num_rows)], pa.int32()).cast(pa.date32())
    moments = pa.array([None if i % 5 == 0 else i * 1_000_003 for i in range(table.num_rows)],
                       pa.int64()).cast(pa.timestamp("us"))
    return table.set_column(table.schema.get_field_index("d"), "d", days).set_column(
        table.schema.get_field_index("t"), "t", moments)


@pytest.mark.parametrize("writer", ["polars", "duckdb", "pandas"])
@pytest.mark.parametrize("key", ["k", "s", "m,d"])
def test_files_of_another_writer_are_read(tmp_path, writer, key):
    table = in_range(make_table(FLAT, ROWS, 22))
    from_arrow(writer, table, tmp_path / "in.parquet")
    source = pq.ParquetFile(tmp_path / "in.parquet").read()
    repartition(tmp_path / "in.parquet", key, 4, tmp_path / "out")
    check_result(source, tmp_path / "out", key.split(","), 4)


@pytest.mark.parametrize("reader", ["polars", "duckdb", "pandas"])
def test_the_result_is_read_by_another_reader(tmp_path, reader):
    table = in_range(make_table(FLAT, ROWS, 23)).drop_columns(["l"])
    repartition(write(table, tmp_path / "in.parquet", row_group_size=500), "k", 4, tmp_path / "out")
    pattern = f"{tmp_path}/out/*.parquet"
    if reader == "polars":
        found = importlib.import_module("polars").read_parquet(pattern).to_arrow()
    elif reader == "duckdb":
        found = importlib.import_module("duckdb").connect().sql(f"SELECT * FROM '{pattern}'").to_arrow_table()
    else:
        pandas = importlib.import_module("pandas")
        frames = [pandas.read_parquet(tmp_path / "out" / name, dtype_backend="pyarrow") for name in part_names(4)]
        found = pa.Table.from_pandas(pandas.concat(frames), preserve_index=False)
    found = pa.table(found).cast(table.schema).sort_by("row")
    assert rows_of(found) == rows_of(pq_view(table))
