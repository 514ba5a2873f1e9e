# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Where settings come from: the line, the environment, the machine."""
import os
import subprocess
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import (DEFAULT_MEMORY, SANITIZED, earmark, expect_refusal, program, repartition,
                             repartition_arguments)
from parquet_data import numbered, part_names, write


@pytest.fixture
def source(tmp_path):
    return write(numbered(10, k=pa.array(range(10))), tmp_path / "in.parquet")


def environment(**variables):
    return {**os.environ, **variables}


def machine_bytes():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemTotal:")) * 1024


# --memory.

def without_memory(inputs, by, partitions, output):
    arguments = repartition_arguments(inputs, by, partitions, output)
    at = arguments.index("--memory")
    return arguments[:at] + arguments[at + 2:]


def test_memory_is_automatic_unless_said_otherwise(tmp_path, source):
    outcome = earmark(*without_memory(source, "k", 2, tmp_path / "out"), "--json")
    assert outcome.code == 0, outcome
    assert 0 < outcome.json["limit_bytes"] <= 0.8 * machine_bytes()
    named = repartition(source, "k", 2, tmp_path / "named", memory="auto")
    assert 0 < named["limit_bytes"] <= 0.8 * machine_bytes()


def test_memory_may_be_a_percentage_of_the_machine(tmp_path, source):
    half = repartition(source, "k", 2, tmp_path / "half", memory="50%")["limit_bytes"]
    odd = repartition(source, "k", 2, tmp_path / "odd", memory="37.5%")["limit_bytes"]
    assert half <= 0.5 * machine_bytes()
    assert odd == pytest.approx(half * 0.75, abs=2)


def limited_cgroup(parent, limit_file, limit):
    """A new cgroup below `parent`; nothing where there can be none."""
    folder = os.path.join(parent, f"earmark-test-{uuid.uuid4()}")
    if not os.path.exists(os.path.join(parent, "cgroup.procs")):
        return None
    try:
        os.mkdir(folder)
    except OSError:
        return None
    try:
        with open(os.path.join(folder, limit_file), "r+") as file:
            file.write(str(limit))
        return folder
    except OSError:
        os.rmdir(folder)
        return None


@pytest.fixture
def memory_cgroup():
    """A cgroup of version 1 or 2 that allows 300 MiB, and its limit."""
    limit = 300 << 20
    folder = (limited_cgroup("/sys/fs/cgroup", "memory.max", limit) or
              limited_cgroup("/sys/fs/cgroup/memory", "memory.limit_in_bytes", limit))
    if folder is None:
        pytest.skip("making a memory cgroup needs root and a writable hierarchy")
    yield folder, limit
    os.rmdir(folder)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory does not fit")
def test_memory_is_read_from_the_cgroup_of_the_process(tmp_path, source, memory_cgroup):
    folder, limit = memory_cgroup

    def join():
        with open(os.path.join(folder, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    outcome = earmark(*without_memory(source, "k", 2, tmp_path / "auto"), "--json", preexec_fn=join)
    assert outcome.code == 0, outcome
    assert 0.6 * limit <= outcome.json["limit_bytes"] <= 0.8 * limit
    outcome = earmark(*repartition_arguments(source, "k", 2, tmp_path / "share", "50%"), "--json", preexec_fn=join)
    assert outcome.code == 0 and outcome.json["limit_bytes"] == limit // 2, outcome
    outcome = earmark("info", "--json", preexec_fn=join)
    assert outcome.json["memory"]["cgroup"] == folder
    assert outcome.json["memory"]["cgroup_limit_bytes"]["value"] == limit


# The environment.

def test_every_option_can_come_from_the_environment(tmp_path, source):
    outcome = earmark("repartition", source, env=environment(
        EARMARK_BY="k", EARMARK_PARTITIONS="3", EARMARK_OUTPUT=str(tmp_path / "out"), EARMARK_MEMORY=DEFAULT_MEMORY,
        EARMARK_THREADS="1", EARMARK_COMPRESSION="zstd", EARMARK_ROW_GROUP_BYTES="1MiB", EARMARK_PROGRESS="never",
        EARMARK_JSON="1", EARMARK_VERIFY="1", EARMARK_COLUMNS="row"))
    assert outcome.code == 0 and outcome.stderr == "", outcome
    assert outcome.json["files"] == 3 and outcome.json["verified"] is True
    assert sorted(os.listdir(tmp_path / "out")) == part_names(3)
    part = pq.ParquetFile(tmp_path / "out" / "part-00000.parquet")
    assert part.schema_arrow.names == ["row"]
    assert part.metadata.row_group(0).column(0).compression == "ZSTD"


def test_the_line_wins_over_the_environment(tmp_path, source):
    arguments = [*repartition_arguments(source, "k", 2, tmp_path / "out"), "--json"]
    outcome = earmark(*arguments, env=environment(EARMARK_PARTITIONS="7", EARMARK_MEMORY="nonsense", EARMARK_BY="zz",
                                                  EARMARK_JSON="0"))
    assert outcome.code == 0 and outcome.json["files"] == 2, outcome


def test_a_switch_can_be_turned_off_in_the_environment(tmp_path, source):
    repartition(source, "k", 2, tmp_path / "out")
    arguments = repartition_arguments(source, "k", 2, tmp_path / "out")
    assert earmark(*arguments, env=environment(EARMARK_OVERWRITE="no")).code == 2
    assert earmark(*arguments, env=environment(EARMARK_OVERWRITE="yes")).code == 0


@pytest.mark.parametrize("variable, value", [
    ("EARMARK_THREADS", "many"), ("EARMARK_COMPRESSION", "lzo"), ("EARMARK_ROW_GROUP_BYTES", "0"),
    ("EARMARK_PROGRESS", "often"), ("EARMARK_COLUMNS", "a,"), ("EARMARK_VERIFY", "perhaps"),
    ("EARMARK_OVERWRITE", "2"), ("EARMARK_MEMORY", "120%"), ("EARMARK_PARTITIONS", "-3"), ("EARMARK_BY", '"k')])
def test_a_variable_that_makes_no_sense_is_named(tmp_path, source, variable, value):
    option = "--" + variable[len("EARMARK_"):].lower().replace("_", "-")
    arguments = repartition_arguments(source, "k", 2, tmp_path / "out")
    if option in arguments:
        at = arguments.index(option)
        arguments = arguments[:at] + arguments[at + 2:]
    expect_refusal("usage", arguments, tmp_path, variable, value, environment=environment(**{variable: value}))


def test_json_from_the_environment_holds_for_errors_too(tmp_path):
    outcome = earmark("repartition", env=environment(EARMARK_JSON="true"))
    assert outcome.code == 2 and outcome.error["kind"] == "usage", outcome


# Column names.

def test_names_are_quoted_alike_everywhere(tmp_path):
    odd = ['a,b', 'say "hi"', ' outer ', "größe", ""]
    table = numbered(50, **{name: pa.array([i % 5 for i in range(50)]) for name in odd})
    path = write(table, tmp_path / "a.parquet")
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in odd)
    outcome = repartition(path, quoted, 3, tmp_path / "out", "--columns", quoted)
    assert outcome["rows"] == 50
    assert pq.ParquetFile(tmp_path / "out" / "part-00000.parquet").schema_arrow.names == odd


# info.

def test_info_tells_what_was_built_and_where_settings_come_from():
    outcome = earmark("info", "--memory", "1GiB", "--json", env=environment(EARMARK_THREADS="3", EARMARK_THRAEDS="3"))
    assert outcome.code == 0 and outcome.stderr == "", outcome
    info = outcome.json
    assert set(info) >= {"build", "libraries", "machine", "memory", "limits", "kernel", "folder", "settings"}
    assert info["build"]["version"] == earmark("--version").stdout.split()[1]
    assert info["libraries"]["arrow"] == pa.__version__
    assert info["machine"]["cores"] >= info["machine"]["usable_cores"] >= 1
    assert info["memory"]["machine_bytes"] == {"value": machine_bytes(), "source": "/proc/meminfo"}
    assert info["memory"]["limit_bytes"] == {"value": 1 << 30, "source": "--memory"}
    assert info["kernel"]["release"].split()[1] == os.uname().release
    assert info["settings"]["memory"] == {"value": "1GiB", "source": "--memory"}
    assert info["settings"]["threads"] == {"value": "3", "source": "EARMARK_THREADS"}
    assert info["settings"]["progress"] == {"value": "auto", "source": "default"}
    assert "EARMARK_THRAEDS" in info["settings"]


def test_info_is_readable_text_without_json(tmp_path):
    outcome = earmark("info", "--output", tmp_path)
    assert outcome.code == 0 and outcome.stderr == "", outcome
    assert "\nkernel\n" in outcome.stdout and str(tmp_path) in outcome.stdout
    assert os.listdir(tmp_path) == []


def test_info_refuses_what_commands_would_refuse():
    for arguments in (["--memory", "lots"], ["--threads", "0"], ["--nonsense"], ["extra"]):
        outcome = earmark("info", *arguments, "--json")
        assert outcome.code == 2 and outcome.error["kind"] == "usage", outcome


def test_info_works_where_nothing_may_be_written():
    outcome = earmark("info", "--output", "/proc", "--json")
    assert outcome.code == 0 and outcome.json["folder"]["unnamed_files"].startswith("no ("), outcome


def test_info_tells_of_a_full_standard_output():
    with open("/dev/full", "w") as full:
        result = subprocess.run([program(), "info"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 5 and "standard output" in result.stderr
