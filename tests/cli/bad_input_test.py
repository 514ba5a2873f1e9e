# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Input and output that must be refused: with the documented exit code, a clear message, and nothing changed."""
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import earmark, expect_refusal, repartition, repartition_arguments, snapshot
from parquet_data import check_result, numbered, part_names, write

ROWS = 5000


def some_table(rows=ROWS):
    return numbered(rows, k=pa.array([i * 7 % 1000 for i in range(rows)]),
                    s=pa.array([f"text {i * 31 % 977}" for i in range(rows)]))


@pytest.fixture
def good(tmp_path):
    (tmp_path / "in").mkdir()
    return write(some_table(), tmp_path / "in" / "a.parquet")


def refuse_input(tmp_path, inputs, *words, by="k"):
    return expect_refusal("input", repartition_arguments(inputs, by, 4, tmp_path / "out"), tmp_path, *words)


# Missing.

def test_a_missing_file_is_named(tmp_path):
    error = refuse_input(tmp_path, tmp_path / "none.parquet", "none.parquet")
    assert error["file"].endswith("none.parquet")


def test_a_missing_file_among_others_is_named(tmp_path, good):
    refuse_input(tmp_path, [good, tmp_path / "none.parquet"], "none.parquet")


def test_a_pattern_that_matches_nothing_is_named(tmp_path):
    refuse_input(tmp_path, tmp_path / "*.parquet", "*.parquet")


def test_a_folder_without_parquet_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "readme.txt").write_text("no data")
    refuse_input(tmp_path, tmp_path / "in", "in")


def test_a_folder_with_skipped_names_only_has_no_input(tmp_path):
    (tmp_path / "in").mkdir()
    write(some_table(10), tmp_path / "in" / "_a.parquet")
    write(some_table(10), tmp_path / "in" / ".a.parquet")
    refuse_input(tmp_path, tmp_path / "in", "in")


def test_a_path_below_a_file_is_named(tmp_path, good):
    refuse_input(tmp_path, os.path.join(good, "b.parquet"), "b.parquet")


def test_a_dangling_link_is_named(tmp_path):
    os.symlink(tmp_path / "gone", tmp_path / "link.parquet")
    refuse_input(tmp_path, tmp_path / "link.parquet", "link.parquet")


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    arguments = repartition_arguments(tmp_path / "pipe.parquet", "k", 4, tmp_path / "out")
    outcome = earmark(*arguments)
    assert outcome.code == 3 and "pipe.parquet" in outcome.stderr


# Not Parquet, or broken.

@pytest.mark.parametrize("content", [b"", b"P", b"PAR1", b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", b"hello, world! " * 100,
                                     b"PAR1" + b"\xff" * 200 + b"\xff\xff\xff\x7fPAR1", b"PARE" * 50])
def test_a_file_that_is_not_parquet_is_named(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    error = refuse_input(tmp_path, tmp_path / "a.parquet", "a.parquet")
    assert error["file"].endswith("a.parquet")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_named(tmp_path, good, kept):
    whole = open(good, "rb").read()
    (tmp_path / "in" / "cut.parquet").write_bytes(whole[:int(len(whole) * kept)])
    refuse_input(tmp_path, [good, tmp_path / "in" / "cut.parquet"], "cut.parquet")


def test_a_file_whose_start_is_cut_away_is_refused(tmp_path, good):
    """The footer is whole, but its offsets point past where the data is."""
    whole = open(good, "rb").read()
    (tmp_path / "in" / "cut.parquet").write_bytes(whole[len(whole) // 2:])
    refuse_input(tmp_path, tmp_path / "in" / "cut.parquet", "cut.parquet")


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_a_corrupt_page_names_file_and_column(tmp_path, column, codec):
    path = write(some_table(), tmp_path / "a.parquet", compression=codec, use_dictionary=False, row_group_size=1000)
    chunk = pq.read_metadata(path).row_group(2).column(column)
    damage(path, chunk.data_page_offset, chunk.total_compressed_size, keep=0)
    error = refuse_input(tmp_path, path, "a.parquet")
    assert error.get("column") == chunk.path_in_schema, error
    assert error.get("row_group") == 2, error


def test_a_corrupt_page_body_is_refused(tmp_path):
    path = write(some_table(), tmp_path / "a.parquet", compression="snappy", use_dictionary=False)
    chunk = pq.read_metadata(path).row_group(0).column(2)
    damage(path, chunk.data_page_offset, chunk.total_compressed_size, keep=60)
    refuse_input(tmp_path, path, "a.parquet")


def test_a_corrupt_dictionary_is_refused(tmp_path):
    path = write(some_table(), tmp_path / "a.parquet", compression="snappy")
    chunk = pq.read_metadata(path).row_group(0).column(2)
    damage(path, chunk.dictionary_page_offset, chunk.data_page_offset - chunk.dictionary_page_offset, keep=0)
    refuse_input(tmp_path, path, "a.parquet")


def test_a_wrong_checksum_is_refused(tmp_path):
    path = write(some_table(), tmp_path / "a.parquet", compression="none", use_dictionary=False,
                 write_page_checksum=True)
    chunk = pq.read_metadata(path).row_group(0).column(1)
    with open(path, "r+b") as file:
        file.seek(chunk.data_page_offset + chunk.total_compressed_size - 5)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    refuse_input(tmp_path, path, "a.parquet")


def varint(number):
    """As Thrift's compact protocol writes a signed number."""
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7f:
        out.append(zigzag & 0x7f | 0x80)
        zigzag >>= 7
    return bytes(out) + bytes([zigzag])


def claim(path, values=None, uncompressed=None, compressed=None):
    """Rewrites what the footer says of the first chunk's size."""
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    true = (chunk.num_values, chunk.total_uncompressed_size, chunk.total_compressed_size)
    claimed = [old if new is None else new for old, new in zip(true, (values, uncompressed, compressed))]
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    # The fields 5 to 7 of a chunk's metadata, one after the other.
    old, new = (b"".join(b"\x16" + varint(number) for number in numbers) for numbers in (true, claimed))
    footer = whole[begin:-8]
    assert footer.count(old) >= 1
    footer = footer.replace(old, new, 1)
    path.write_bytes(whole[:begin] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("claimed", [{"values": -1}, {"values": 1 << 50}, {"uncompressed": -5},
                                     {"uncompressed": 1 << 62}, {"compressed": -1}, {"compressed": 1 << 40}])
def test_a_footer_that_claims_impossible_sizes_is_refused(tmp_path, claimed):
    path = tmp_path / "in.parquet"
    write(some_table(), path)
    claim(path, **claimed)
    error = refuse_input(tmp_path, [path], "in.parquet", "claims")
    assert error["row_group"] == 0


def damage(path, offset, length, keep):
    with open(path, "r+b") as file:
        file.seek(offset + keep)
        file.write(b"\xff" * max(length - keep, 8))


def test_any_flipped_byte_is_refused_or_harmless(tmp_path):
    """Whatever byte of a small file is wrong: no crash, no hang, and nothing left behind after a refusal."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.parquet"
    write(some_table(50), path, compression="snappy")
    whole = path.read_bytes()
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        broken = bytearray(whole)
        broken[at] ^= 0xA5
        path.write_bytes(broken)
        outcome = earmark(*repartition_arguments(path, "k", 2, tmp_path / "out"))
        assert outcome.code in (0, 3, 4), (at, outcome)
        if outcome.code:
            assert sorted(os.listdir(tmp_path)) == ["in"], (at, outcome)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


# Schemas that differ, and keys.

@pytest.mark.parametrize("other, column", [
    (some_table(5).rename_columns(["row", "k", "t"]), "s"),
    (some_table(5).select(["row", "s", "k"]), "k"),
    (some_table(5).append_column("more", pa.array([1] * 5)), "more"),
    (some_table(5).drop_columns(["s"]), "s"),
    (some_table(5).set_column(1, "k", pa.array([1] * 5, pa.int32())), "k"),
    (some_table(5).set_column(1, "k", pa.array([1] * 5, pa.timestamp("us"))), "k"),
    (some_table(5).set_column(2, "s", pa.array([b"a"] * 5, pa.binary())), "s"),
    (some_table(5).set_column(2, pa.field("s", pa.string(), nullable=False), pa.array(["a"] * 5)), "s"),
    (some_table(5).set_column(2, "s", pa.array([["a"]] * 5)), "s")],
    ids=["name", "order", "more", "fewer", "physical type", "logical type", "binary", "nullability", "nesting"])
def test_a_file_of_another_schema_is_named_with_the_column(tmp_path, good, other, column):
    path = write(other, tmp_path / "in" / "b.parquet")
    error = refuse_input(tmp_path, [good, path], "b.parquet", column)
    assert error["file"].endswith("b.parquet") and column in error.get("column", ""), error


def test_an_unknown_key_is_named(tmp_path, good):
    refuse_input(tmp_path, good, "missing", by="missing")
    refuse_input(tmp_path, good, "K", by="k,K")


def test_a_nested_key_is_named(tmp_path):
    table = numbered(3, l=pa.array([[1], [], None]), t=pa.array([{"x": 1}] * 3),
                     m=pa.array([[("a", 1)]] * 3, type=pa.map_(pa.string(), pa.int64())))
    path = write(table, tmp_path / "a.parquet")
    for key in ("l", "t", "m"):
        refuse_input(tmp_path, path, key, by=key)


def test_a_field_of_a_struct_is_no_key(tmp_path):
    path = write(numbered(3, t=pa.array([{"x": 1}] * 3)), tmp_path / "a.parquet")
    refuse_input(tmp_path, path, "t.x", by="t.x")


def test_an_ambiguous_key_is_named(tmp_path):
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["k", "k"])
    refuse_input(tmp_path, write(table, tmp_path / "a.parquet"), "k", by="k")


def test_a_file_without_columns_is_named(tmp_path):
    refuse_input(tmp_path, write(pa.table({}), tmp_path / "a.parquet"), "a.parquet")


# Output.

def refuse_output(tmp_path, inputs, output, *words):
    return expect_refusal("output", repartition_arguments(inputs, "k", 4, output), tmp_path, *words)


def test_a_full_output_folder_is_refused(tmp_path, good):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("keep me")
    refuse_output(tmp_path, good, tmp_path / "out", "out", "--overwrite")


def test_an_output_that_is_a_file_is_refused(tmp_path, good):
    (tmp_path / "out").write_text("keep me")
    refuse_output(tmp_path, good, tmp_path / "out", "out")


def test_an_output_that_is_an_input_is_refused_even_with_overwrite(tmp_path, good):
    folder = os.path.dirname(good)
    for more in ([], ["--overwrite"]):
        for output in (folder, folder + "/", os.path.join(folder, "..", "in"), good):
            arguments = [*repartition_arguments(good, "k", 4, output), *more]
            expect_refusal("output", arguments, tmp_path)


def test_an_output_above_an_input_is_refused_even_with_overwrite(tmp_path, good):
    (tmp_path / "above").mkdir()
    os.rename(tmp_path / "in", tmp_path / "above" / "in")
    arguments = repartition_arguments(tmp_path / "above" / "in" / "a.parquet", "k", 4, tmp_path / "above")
    expect_refusal("output", [*arguments, "--overwrite"], tmp_path, "above")


def test_an_output_inside_an_input_folder_is_refused(tmp_path, good):
    refuse_output(tmp_path, tmp_path / "in", tmp_path / "in" / "out")


def test_an_output_reached_through_a_link_to_the_input_is_refused(tmp_path, good):
    os.symlink(tmp_path / "in", tmp_path / "link")
    arguments = [*repartition_arguments(good, "k", 4, tmp_path / "link"), "--overwrite"]
    expect_refusal("output", arguments, tmp_path)


def test_an_output_below_a_file_is_an_error_of_the_file_system(tmp_path, good):
    (tmp_path / "file").write_text("keep me")
    expect_refusal("disk", repartition_arguments(good, "k", 4, tmp_path / "file" / "out"), tmp_path, "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_output_in_a_folder_that_may_not_be_written_is_an_error_of_the_file_system(tmp_path, good):
    (tmp_path / "locked").mkdir(mode=0o500)
    expect_refusal("disk", repartition_arguments(good, "k", 4, tmp_path / "locked" / "out"), tmp_path, "locked")


def test_a_name_that_is_too_long_is_an_error_of_the_file_system(tmp_path, good):
    expect_refusal("disk", repartition_arguments(good, "k", 4, tmp_path / ("o" * 300)), tmp_path)


# What looks bad but is not.

def test_a_file_of_no_rows_gives_empty_files_of_its_schema(tmp_path):
    table = some_table(0)
    path = write(table, tmp_path / "a.parquet")
    summary = repartition(path, "k", 3, tmp_path / "out")
    assert summary["rows"] == 0 and summary["files"] == 3
    check_result(table, tmp_path / "out", ["k"], 3)


def test_a_file_of_no_row_groups_gives_empty_files_of_its_schema(tmp_path):
    schema = some_table(1).schema
    with pq.ParquetWriter(tmp_path / "a.parquet", schema):
        pass
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 0
    assert repartition(tmp_path / "a.parquet", "k", 3, tmp_path / "out")["rows"] == 0
    check_result(schema.empty_table(), tmp_path / "out", ["k"], 3)


def test_empty_files_and_row_groups_among_others_change_nothing(tmp_path):
    table = some_table(300)
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 100))
        writer.write_table(table.slice(0, 0))
        writer.write_table(table.slice(100, 100))
    write(table.slice(0, 0), tmp_path / "b.parquet")
    write(table.slice(200), tmp_path / "c.parquet")
    assert repartition(tmp_path / "*.parquet", "k", 3, tmp_path / "out")["rows"] == 300
    check_result(table, tmp_path / "out", ["k"], 3)


def test_a_file_without_statistics_and_page_index_is_fine(tmp_path):
    table = some_table()
    path = write(table, tmp_path / "a.parquet", write_statistics=False, write_page_index=False)
    repartition(path, "k", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 3)


def test_names_that_come_twice_are_fine_when_they_are_no_key(tmp_path):
    table = pa.Table.from_arrays([pa.array(range(100)), pa.array(range(100)), pa.array(["x"] * 100)],
                                 names=["k", "d", "d"])
    path = write(table, tmp_path / "a.parquet")
    repartition(path, "k", 3, tmp_path / "out")
    parts = [pq.ParquetFile(tmp_path / "out" / name).read() for name in part_names(3)]
    assert sorted(i for part in parts for i in part.column(0).to_pylist()) == list(range(100))
    assert all(part.schema.names == ["k", "d", "d"] for part in parts)
    assert all(part.column(0).to_pylist() == part.column(1).to_pylist() for part in parts)


def test_a_name_with_commas_quotes_and_spaces_can_be_a_key(tmp_path):
    name = ' a, "b" c '
    table = numbered(100, **{name: pa.array([i % 9 for i in range(100)])})
    path = write(table, tmp_path / "a.parquet")
    repartition(path, '" a, ""b"" c "', 3, tmp_path / "out")
    check_result(table, tmp_path / "out", [name], 3)


def test_a_name_with_dots_can_be_a_key(tmp_path):
    table = numbered(100, **{"a.b": pa.array([i % 9 for i in range(100)]), "a": pa.array([{"b": 1}] * 100)})
    path = write(table, tmp_path / "a.parquet")
    repartition(path, "a.b", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["a.b"], 3)


def test_odd_file_names_are_fine(tmp_path):
    table = some_table(10)
    folder = tmp_path / "größe [1] *"
    folder.mkdir()
    path = write(table, folder / "a b\n'c'.parquet")
    repartition(path, "k", 2, folder / "-out")
    check_result(table, folder / "-out", ["k"], 2)


def test_an_empty_output_folder_is_used(tmp_path, good):
    (tmp_path / "out").mkdir()
    repartition(good, "k", 2, tmp_path / "out")
    check_result(some_table(), tmp_path / "out", ["k"], 2)


def test_missing_parents_of_the_output_are_made_and_taken_away_after_a_failure(tmp_path, good):
    repartition(good, "k", 2, tmp_path / "x" / "y" / "out")
    check_result(some_table(), tmp_path / "x" / "y" / "out", ["k"], 2)
    before = snapshot(tmp_path)
    refuse_input(tmp_path, good, by="missing")
    outcome = earmark(*repartition_arguments(good, "missing", 2, tmp_path / "p" / "q" / "out"))
    assert outcome.code == 3 and snapshot(tmp_path) == before
