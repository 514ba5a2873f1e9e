# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Every type that Parquet files have, flat, nullable and nested, comes through and goes where the function says."""
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import repartition
from parquet_data import check_result, make_table, pq_view, read_parts, write

ROWS = 400
PARTITIONS = 5

FLAT_TYPES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
    pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"),
    pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="Europe/Berlin"), pa.timestamp("ns", tz="+05:30"),
    pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns"), pa.string(), pa.large_string(),
    pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1), pa.binary(7), pa.binary(16),
    pa.null()]

DECIMALS = ([pa.decimal32(p, p // 2) for p in (1, 5, 9)] + [pa.decimal64(p, p // 2) for p in (1, 10, 18)] +
            [pa.decimal128(p, p // 3) for p in range(1, 39)] + [pa.decimal256(p, p // 3) for p in range(1, 77)])

DICTIONARIES = [pa.dictionary(index, value) for index, value in [
    (pa.int8(), pa.string()), (pa.int32(), pa.string()), (pa.int16(), pa.large_string()), (pa.int32(), pa.binary()),
    (pa.int32(), pa.int64()), (pa.int32(), pa.decimal128(20, 3))]]

STRUCT = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string(), nullable=False), pa.field("c", pa.float64())])
MAP = pa.map_(pa.string(), pa.int64())

NESTED_TYPES = {
    "list": pa.list_(pa.int64()),
    "list of required": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    "large list": pa.large_list(pa.string()),
    "fixed size list": pa.list_(pa.float32(), 3),
    "struct": STRUCT,
    "struct of required": pa.struct([pa.field("x", pa.int64(), nullable=False)]),
    "map": MAP,
    "map of lists": pa.map_(pa.int32(), pa.list_(pa.string())),
    "list of structs of maps": pa.list_(pa.struct([("m", MAP), ("n", pa.int8())])),
    "list of lists of lists": pa.list_(pa.list_(pa.list_(pa.bool_()))),
    "struct of structs of lists": pa.struct([("s", pa.struct([("l", pa.list_(pa.date32())), ("t", pa.string())]))]),
    "list of decimals": pa.list_(pa.decimal128(20, 2)),
    "list of timestamps": pa.list_(pa.timestamp("us", tz="UTC")),
    "list of nulls": pa.list_(pa.null()),
    "list of dictionaries": pa.list_(pa.dictionary(pa.int32(), pa.string())),
}


def deep_type(depth):
    kind = pa.int64()
    for level in range(depth):
        kind = pa.list_(kind) if level % 2 else pa.struct([(f"level{level}", kind), (f"also{level}", pa.string())])
    return kind


def run(tmp_path, fields, seed, keys, rows=ROWS, **options):
    table = make_table(fields, rows, seed)
    path = write(table, tmp_path / "in.parquet", **options)
    repartition(path, ",".join(keys), PARTITIONS, tmp_path / "out")
    check_result(table, tmp_path / "out", keys, PARTITIONS)


def by_name(kind):
    return str(kind)


@pytest.mark.parametrize("kind", FLAT_TYPES, ids=by_name)
def test_a_flat_type_comes_through_nullable_and_required_and_is_a_key(tmp_path, kind):
    fields = [pa.field("v", kind), pa.field("r", kind, nullable=pa.types.is_null(kind))]
    for key in ("v", "r"):
        (tmp_path / key).mkdir()
        run(tmp_path / key, fields, 1, [key], row_group_size=150)


@pytest.mark.parametrize("kind", DECIMALS, ids=by_name)
def test_a_decimal_of_any_precision_comes_through_and_is_a_key(tmp_path, kind):
    run(tmp_path, [pa.field("v", kind), pa.field("r", kind, nullable=False)], 2, ["v", "r"], rows=60)


@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_hash_alike_whatever_their_storage(tmp_path, as_integer):
    fields = [pa.field("v", pa.decimal128(p, 2)) for p in (7, 15)]
    fields = [pa.field(f"v{i}", field.type) for i, field in enumerate(fields)]
    run(tmp_path, fields, 3, ["v0", "v1"], store_decimal_as_integer=as_integer)


@pytest.mark.parametrize("kind", DICTIONARIES, ids=by_name)
def test_a_dictionary_comes_through_and_is_a_key_by_value(tmp_path, kind):
    table = make_table([pa.field("v", kind)], ROWS, 4)
    path = write(table, tmp_path / "in.parquet", row_group_size=90)
    repartition(path, "v", PARTITIONS, tmp_path / "out")
    parts = check_result(table, tmp_path / "out", ["v"], PARTITIONS)
    assert all(part.schema.field("v").type == pq_view(table).schema.field("v").type for part in parts)


def test_a_dictionary_goes_where_its_plain_values_go(tmp_path):
    table = make_table([pa.field("v", pa.dictionary(pa.int32(), pa.string()))], ROWS, 5)
    plain = table.set_column(1, "v", table.column("v").cast(pa.string()))
    homes = []
    for name, each in (("d", table), ("p", plain)):
        repartition(write(each, tmp_path / f"{name}.parquet"), "v", PARTITIONS, tmp_path / name)
        homes.append([part.column("row").to_pylist() for part in read_parts(tmp_path / name, PARTITIONS)])
    assert homes[0] == homes[1]


@pytest.mark.parametrize("kind", NESTED_TYPES.values(), ids=NESTED_TYPES.keys())
def test_a_nested_type_comes_through_nullable_and_required(tmp_path, kind):
    run(tmp_path, [pa.field("k", pa.int32()), pa.field("v", kind), pa.field("r", kind, nullable=False)], 6, ["k"],
        row_group_size=130)


@pytest.mark.parametrize("depth", [4, 9, 20])
def test_deep_nesting_comes_through(tmp_path, depth):
    run(tmp_path, [pa.field("k", pa.string()), pa.field("v", deep_type(depth))], 7, ["k"], rows=120)


def test_all_types_together_come_through(tmp_path):
    kinds = [*FLAT_TYPES, *DECIMALS[::9], *DICTIONARIES, *NESTED_TYPES.values()]
    fields = [pa.field(f"c{number}", kind, nullable=number % 3 != 0 or pa.types.is_null(kind))
              for number, kind in enumerate(kinds)]
    run(tmp_path, fields, 8, ["c3", "c28"], row_group_size=170)


@pytest.mark.parametrize("values", [
    [None] * 50, [[]] * 50, [[None]] * 50, [[], None, [None], [1]] * 20, [[1] * 3000, [], None] * 4],
    ids=["nulls", "empty", "lists of a null", "mixed", "long"])
def test_lists_at_their_edges_come_through(tmp_path, values):
    table = pa.table({"row": pa.array(range(len(values))), "v": pa.array(values, pa.list_(pa.int16()))})
    repartition(write(table, tmp_path / "in.parquet"), "row", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["row"], 3)


@pytest.mark.parametrize("values", [
    [None] * 50, [{"a": None, "b": "", "c": None}] * 50, [None, {"a": 1, "b": "x", "c": None}] * 25],
    ids=["nulls", "of nulls", "mixed"])
def test_structs_at_their_edges_come_through(tmp_path, values):
    table = pa.table({"row": pa.array(range(50)), "v": pa.array(values, STRUCT)})
    repartition(write(table, tmp_path / "in.parquet"), "row", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["row"], 3)


def test_extension_types_come_through_and_hash_as_their_storage(tmp_path):
    fields = [pa.field("u", pa.uuid()), pa.field("j", pa.json_())]
    run(tmp_path, fields, 9, ["u", "j"])


def test_very_long_strings_come_through(tmp_path):
    rng = random.Random(10)
    values = [rng.choice("abc") * rng.choice([0, 1, 100, 70_000, 3_000_000]) for _ in range(60)]
    table = pa.table({"row": pa.array(range(60)), "v": pa.array(values)})
    repartition(write(table, tmp_path / "in.parquet", row_group_size=25), "v", 4, tmp_path / "out")
    check_result(table, tmp_path / "out", ["v"], 4)


def test_a_thousand_columns_come_through(tmp_path):
    fields = [pa.field(f"c{number}", [pa.int32(), pa.string(), pa.float64()][number % 3]) for number in range(1000)]
    run(tmp_path, fields, 11, ["c1"], rows=30)


def test_strings_with_many_values_and_with_few_come_through(tmp_path):
    rng = random.Random(12)
    table = pa.table({"row": pa.array(range(30_000)), "few": pa.array([rng.choice("abc") for _ in range(30_000)]),
                      "many": pa.array([f"{i:x} {rng.random()}" for i in range(30_000)]),
                      "one": pa.array(["same"] * 30_000)})
    repartition(write(table, tmp_path / "in.parquet", row_group_size=7000), "many", 4, tmp_path / "out")
    check_result(table, tmp_path / "out", ["many"], 4)


def test_int96_timestamps_keep_their_moments_and_hash_as_nanoseconds(tmp_path):
    """Files of older engines: 12 bytes, which readers see as nanoseconds."""
    table = make_table([pa.field("t", pa.timestamp("ns"))], ROWS, 13)
    path = write(table, tmp_path / "in.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    assert pq.ParquetFile(path).schema.column(1).physical_type == "INT96"
    repartition(path, "t", PARTITIONS, tmp_path / "out")
    check_result(table, tmp_path / "out", ["t"], PARTITIONS)
    assert pq.ParquetFile(tmp_path / "out" / "part-00000.parquet").schema.column(1).physical_type == "INT96"


def test_bits_of_floats_are_kept(tmp_path):
    """NaNs with a payload, negative zero: what a key ignores, the data keeps."""
    bits = [0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001, 0x8000000000000000, 0, 1, 0x7FF0000000000000]
    column = pa.array(bits * 20, pa.uint64()).view(pa.float64())
    table = pa.table({"row": pa.array(range(140)), "v": column})
    repartition(write(table, tmp_path / "in.parquet"), "row", 3, tmp_path / "out")
    kept = pa.concat_tables(read_parts(tmp_path / "out", 3)).sort_by("row").column("v").combine_chunks()
    assert kept.view(pa.uint64()).to_pylist() == bits * 20
