# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""What counts as input, and the options of the output."""
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import earmark, repartition, repartition_arguments
from parquet_data import check_result, numbered, part_names, read_parts, write


def some_table(rows=900):
    return numbered(rows, k=pa.array([i * 13 % 101 for i in range(rows)]))


def pieces(folder, *names, rows=100):
    """Consecutive slices of `some_table`, one a name."""
    table = some_table(rows * len(names))
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(table.slice(number * rows, rows), path)
    return table


def test_several_files_are_read_in_the_order_given(tmp_path):
    table = pieces(tmp_path, "z.parquet", "a.parquet", "m.pq")
    summary = repartition([tmp_path / name for name in ("z.parquet", "a.parquet", "m.pq")], "k", 3, tmp_path / "out")
    assert summary["bytes_in"] == sum(os.path.getsize(tmp_path / name) for name in ("z.parquet", "a.parquet", "m.pq"))
    assert summary["bytes_out"] == sum(os.path.getsize(tmp_path / "out" / name) for name in part_names(3))
    check_result(table, tmp_path / "out", ["k"], 3)


def test_a_folder_stands_for_all_parquet_below_it_sorted(tmp_path):
    table = pieces(tmp_path / "in", "a.parquet", "b/c.parquet", "b/d/e.parquet", "f.parquet")
    (tmp_path / "in" / "notes.txt").write_text("not Parquet")
    repartition(tmp_path / "in", "k", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 3)


def test_names_with_a_leading_dot_or_underscore_are_skipped(tmp_path):
    table = pieces(tmp_path / "in", "a.parquet", "b.parquet")
    for name in ("_hidden.parquet", ".hidden.parquet", "_folder/x.parquet", ".folder/x.parquet", "_SUCCESS"):
        (tmp_path / "in" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text("broken, if it were read")
    repartition(tmp_path / "in", "k", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 3)


@pytest.mark.parametrize("pattern", ["in/*.parquet", "in/?.parquet", "in/[ab].parquet", "i*/*", "in/**"])
def test_a_pattern_stands_for_what_it_matches_sorted(tmp_path, pattern):
    table = pieces(tmp_path / "in", "a.parquet", "b.parquet")
    repartition(tmp_path / pattern, "k", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 3)


def test_patterns_and_paths_may_be_relative(tmp_path):
    table = pieces(tmp_path / "in", "a.parquet", "b.parquet")
    outcome = earmark(*repartition_arguments("*/*.parquet", "k", 3, "out"), cwd=tmp_path)
    assert outcome.code == 0, outcome
    check_result(table, tmp_path / "out", ["k"], 3)


def test_a_file_named_twice_is_read_twice(tmp_path):
    table = pieces(tmp_path, "a.parquet")
    path = tmp_path / "a.parquet"
    summary = repartition([path, path], "k", 3, tmp_path / "out")
    assert summary["rows"] == 200
    rows = sorted(row for part in read_parts(tmp_path / "out", 3) for row in part.column("row").to_pylist())
    assert rows == sorted(2 * table.column("row").to_pylist())


def test_many_files_are_read_with_few_descriptors(tmp_path):
    table = pieces(tmp_path / "in", *[f"{number:03}.parquet" for number in range(300)], rows=5)
    arguments = repartition_arguments(tmp_path / "in", "k", 40, tmp_path / "out")
    import resource
    outcome = earmark(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1024)))
    assert outcome.code == 0, outcome
    check_result(table, tmp_path / "out", ["k"], 40)


def test_links_are_followed(tmp_path):
    table = pieces(tmp_path / "real", "a.parquet", "b.parquet")
    os.symlink(tmp_path / "real", tmp_path / "link")
    repartition(tmp_path / "link", "k", 3, tmp_path / "out")
    check_result(table, tmp_path / "out", ["k"], 3)


def test_a_result_can_be_the_next_input(tmp_path):
    table = pieces(tmp_path, "a.parquet")
    repartition(tmp_path / "a.parquet", "k", 5, tmp_path / "one")
    repartition(tmp_path / "one", "row", 3, tmp_path / "two")
    rows = sorted(row for part in read_parts(tmp_path / "two", 3) for row in part.column("row").to_pylist())
    assert rows == table.column("row").to_pylist()


def test_overwrite_replaces_a_folder_and_leaves_no_trace_of_it(tmp_path):
    table = pieces(tmp_path, "a.parquet")
    for count in (7, 3):
        repartition(tmp_path / "a.parquet", "k", count, tmp_path / "out", "--overwrite")
        check_result(table, tmp_path / "out", ["k"], count)
    (tmp_path / "out" / "other").mkdir()
    repartition(tmp_path / "a.parquet", "k", 2, tmp_path / "out", "--overwrite")
    check_result(table, tmp_path / "out", ["k"], 2)
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "out"]


def test_a_trailing_slash_of_the_output_changes_nothing(tmp_path):
    table = pieces(tmp_path, "a.parquet")
    repartition(tmp_path / "a.parquet", "k", 3, f"{tmp_path}/out/")
    check_result(table, tmp_path / "out", ["k"], 3)


def test_the_modes_of_the_output_follow_the_umask(tmp_path):
    pieces(tmp_path, "a.parquet")
    arguments = repartition_arguments(tmp_path / "a.parquet", "k", 1, tmp_path / "out")
    assert earmark(*arguments, preexec_fn=lambda: os.umask(0o027)).code == 0
    assert os.stat(tmp_path / "out").st_mode & 0o777 == 0o750
    assert os.stat(tmp_path / "out" / "part-00000.parquet").st_mode & 0o777 == 0o640


def test_the_summary_has_the_documented_keys(tmp_path):
    pieces(tmp_path, "a.parquet")
    summary = repartition(tmp_path / "a.parquet", "k", 3, tmp_path / "out")
    assert list(summary) == ["rows", "files", "bytes_in", "bytes_out", "seconds", "limit_bytes", "baseline_bytes",
                             "peak_resident_bytes", "tiers", "spilled_bytes", "waits", "wait_seconds", "verified"]
    assert summary["rows"] == 100 and summary["files"] == 3 and summary["spilled_bytes"] == 0
    assert 0 < summary["baseline_bytes"] <= summary["peak_resident_bytes"]
    assert summary["tiers"]["host"]["peak_bytes"] > 0 and summary["seconds"] > 0 and summary["verified"] is False


def test_the_summary_for_people_tells_the_same(tmp_path):
    pieces(tmp_path, "a.parquet")
    outcome = earmark(*repartition_arguments(tmp_path / "a.parquet", "k", 3, tmp_path / "out"))
    assert outcome.code == 0 and outcome.stderr == ""
    for word in ("Wrote 3 files", "rows", "100", "read", "written", "throughput", "peak resident size", "budget",
                 "spilled", "waits"):
        assert word in outcome.stdout, (word, outcome)


def test_progress_is_told_in_lines_where_there_is_no_terminal(tmp_path):
    pieces(tmp_path, "a.parquet")
    arguments = repartition_arguments(tmp_path / "a.parquet", "k", 3, tmp_path / "out")
    outcome = earmark(*arguments, "--progress", "always", "--json")
    assert outcome.code == 0 and outcome.json["rows"] == 100
    assert "\x1b" not in outcome.stderr and "\r" not in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("earmark: [") and "100 %" in outcome.stderr


def test_the_rows_of_the_result_are_counted_by_pyarrow_too(tmp_path):
    pieces(tmp_path, "a.parquet", "b.parquet")
    summary = repartition(tmp_path / "*.parquet", "k", 3, tmp_path / "out")
    assert sum(pq.read_metadata(tmp_path / "out" / name).num_rows for name in part_names(3)) == summary["rows"] == 200
