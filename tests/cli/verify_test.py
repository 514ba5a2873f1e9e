# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""`--verify`: a sound result passes, within the memory limit, and says so."""
import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import earmark, earmark_measured, expect_refusal, repartition, repartition_arguments, unsanitized
from parquet_data import check_result, kept_file, make_table, numbered, write

FIELDS = [pa.field("k", pa.int64()), pa.field("s", pa.string()), pa.field("f", pa.float32()),
          pa.field("small", pa.decimal128(7, 2)), pa.field("large", pa.decimal128(30, 5)),
          pa.field("l", pa.list_(pa.struct([("a", pa.int16()), ("b", pa.binary())]))),
          pa.field("e", pa.dictionary(pa.int8(), pa.string())), pa.field("flag", pa.bool_(), nullable=False)]


def test_verified_is_told_in_json_and_text(tmp_path):
    path = write(numbered(10, k=pa.array(range(10))), tmp_path / "in.parquet")
    assert repartition(path, "k", 2, tmp_path / "one")["verified"] is False
    assert repartition(path, "k", 2, tmp_path / "two", "--verify")["verified"] is True
    outcome = earmark(*repartition_arguments(path, "k", 2, tmp_path / "three"), "--verify")
    assert outcome.code == 0 and "the output was read back" in outcome.stdout, outcome


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0", "compression": "zstd"},
                                     {"use_dictionary": False, "compression": "none", "row_group_size": 70},
                                     {"store_schema": False, "version": "1.0"}])
@pytest.mark.parametrize("key", ["k", "s,small", "large", "e"])
def test_a_sound_result_of_any_type_and_encoding_passes(tmp_path, key, options):
    table = make_table(FIELDS, 400, seed=5)
    path = write(table, tmp_path / "in.parquet", **options)
    assert repartition(path, key, 3, tmp_path / "out", "--verify")["verified"] is True
    if options.get("store_schema", True):
        check_result(table, tmp_path / "out", key.split(","), 3)


def test_a_result_of_no_rows_passes(tmp_path):
    path = write(make_table(FIELDS, 0, seed=1), tmp_path / "in.parquet")
    assert repartition(path, "k", 3, tmp_path / "out", "--verify") ["verified"] is True


def test_timestamps_of_the_old_kind_and_names_that_come_twice_pass(tmp_path):
    times = pa.array(range(100), pa.int64()).view(pa.timestamp("ns"))
    table = pa.Table.from_arrays([pa.array(range(100)), times, times], names=["k", "d", "d"])
    path = write(table, tmp_path / "in.parquet", use_deprecated_int96_timestamps=True)
    assert repartition(path, "k", 3, tmp_path / "out", "--verify")["verified"] is True


def make_wide(path):
    rng = numpy.random.default_rng(3)
    rows = 400_000
    columns = {"k": rng.integers(0, 1 << 40, rows), **{f"c{i}": rng.random(rows) for i in range(6)}}
    columns["s"] = pa.array((columns["k"] % 5000).astype(str))
    pq.write_table(pa.table(columns), path, row_group_size=50_000, compression="snappy")


@unsanitized
@pytest.mark.parametrize("partitions", [1, 8, 200])
def test_the_least_memory_for_a_job_is_enough_to_verify_it(tmp_path, partitions):
    path = kept_file("wide", make_wide)
    refused = repartition_arguments(path, "k", partitions, tmp_path / "out", "1MiB", "--verify")
    least = expect_refusal("memory", refused, tmp_path)["least_bytes"]
    arguments = repartition_arguments(path, "k", partitions, tmp_path / "out", least, "--verify", "--json")
    outcome = earmark_measured(tmp_path, *arguments)
    assert outcome.code == 0 and outcome.json["verified"] is True, outcome
    assert outcome.peak_bytes <= least, (outcome.peak_bytes, least)
