# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""What the command line says and refuses before any work starts."""
import os
import re
import subprocess

import pyarrow as pa
import pytest

from earmark_command import DEFAULT_MEMORY, earmark, expect_refusal, program, repartition_arguments
from parquet_data import numbered, write


@pytest.fixture
def source(tmp_path):
    return write(numbered(10, k=pa.array(range(10))), tmp_path / "in.parquet")


def test_no_command_prints_usage_and_ends_with_2():
    outcome = earmark()
    assert outcome.code == 2 and outcome.stdout == ""
    assert "Usage: earmark" in outcome.stderr and "repartition" in outcome.stderr


def test_an_unknown_command_is_refused(tmp_path):
    outcome = earmark("repratition", "in", cwd=tmp_path)
    assert outcome.code == 2 and "repratition" in outcome.stderr


def test_help_and_version_go_to_standard_output():
    for arguments in (["--help"], ["-h"], ["repartition", "--help"], ["repartition", "-h"]):
        outcome = earmark(*arguments)
        assert outcome.code == 0 and outcome.stderr == "" and "earmark repartition" in outcome.stdout
    outcome = earmark("--version")
    assert outcome.code == 0 and re.fullmatch(r"earmark \d+\.\d+\.\d+\n", outcome.stdout)


def test_help_has_examples_and_names_what_works_and_nothing_else():
    text = earmark("repartition", "--help").stdout
    assert "Examples:" in text
    assert set(re.findall(r"^  (--[a-z-]+)", text, re.M)) == {
        "--by", "--partitions", "--output", "--memory", "--threads", "--compression", "--row-group-bytes",
        "--overwrite", "--progress", "--json", "--columns", "--verify"}
    assert "admission" not in text
    assert "default: 64MiB or 122880 rows" in " ".join(text.split())


@pytest.mark.parametrize("missing", ["--by", "--partitions", "--output"])
def test_a_missing_option_is_named(tmp_path, source, missing):
    arguments = repartition_arguments(source, "k", 4, tmp_path / "out")
    at = arguments.index(missing)
    expect_refusal("usage", arguments[:at] + arguments[at + 2:], tmp_path, missing)


def test_no_input_is_refused(tmp_path):
    expect_refusal("usage", repartition_arguments([], "k", 4, tmp_path / "out"), tmp_path, "IN")


@pytest.mark.parametrize("memory", ["0", "0MiB", "-1", "-512MiB", "99999999999TiB", "9223372036854775808", "lots", "",
                                    "0%", "101%", "-1%", "nan%", "automatic", "1e400", "nan"])
def test_a_size_that_is_none_is_refused(tmp_path, source, memory):
    expect_refusal("usage", repartition_arguments(source, "k", 4, tmp_path / "out", memory), tmp_path, "--memory")


def test_sizes_may_be_as_large_as_63_bits(tmp_path, source):
    for memory in ("1PiB", "7EiB", "9EB"):
        arguments = repartition_arguments(source, "k", 2, tmp_path / "out", memory, "--overwrite")
        outcome = earmark(*arguments, "--row-group-bytes", "1EiB")
        assert outcome.code == 0, outcome


@pytest.mark.parametrize("partitions", ["0", "-1", "2147483648", "99999999999999999999", "4.5", "four", ""])
def test_a_number_of_partitions_that_is_none_is_refused(tmp_path, source, partitions):
    expect_refusal("usage", repartition_arguments(source, "k", partitions, tmp_path / "out"), tmp_path, "--partitions")


@pytest.mark.parametrize("option, value", [
    ("--threads", "0"), ("--threads", "-2"), ("--threads", "99999999999999999999"), ("--compression", "lzo"),
    ("--compression", "zstd:99"), ("--compression", "snappy:3"), ("--row-group-bytes", "0"),
    ("--row-group-bytes", "-1MiB"), ("--progress", "perhaps"), ("--columns", "a,"), ("--columns", '"a'), ("--by", "a,"), ("--by", '"a'), ("--nonsense", "x")])
def test_a_wrong_option_is_named(tmp_path, source, option, value):
    arguments = repartition_arguments(source, "k", 4, tmp_path / "out", DEFAULT_MEMORY, option, value)
    expect_refusal("usage", arguments, tmp_path, option)


def test_an_empty_output_name_is_refused(tmp_path, source):
    arguments = [*repartition_arguments(source, "k", 4, ""), "--json"]
    outcome = earmark(*arguments, cwd=tmp_path)
    assert outcome.code == 2 and outcome.error["kind"] in ("usage", "output"), outcome


def test_a_closed_standard_output_is_no_failure(tmp_path, source):
    arguments = [program(), *map(str, repartition_arguments(source, "k", 2, tmp_path / "out"))]
    result = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *arguments], stderr=subprocess.PIPE)
    assert result.returncode == 0, result.stderr
    assert sorted(os.listdir(tmp_path / "out")) == ["part-00000.parquet", "part-00001.parquet"]


def test_a_reader_that_goes_away_is_no_failure(tmp_path, source):
    arguments = [program(), *map(str, repartition_arguments(source, "k", 2, tmp_path / "out"))]
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert result.returncode == 0, result.stderr


def test_a_full_standard_output_is_told(tmp_path, source):
    with open("/dev/full", "w") as full:
        result = subprocess.run([program(), "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 5 and "standard output" in result.stderr


def test_closed_standard_descriptors_do_not_end_up_in_the_output(tmp_path, source):
    arguments = [program(), *map(str, repartition_arguments(source, "k", 2, tmp_path / "out"))]
    result = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *arguments, "--progress", "always"])
    assert result.returncode == 0
    import pyarrow.parquet as pq
    assert sum(pq.read_metadata(tmp_path / "out" / name).num_rows for name in os.listdir(tmp_path / "out")) == 10
