# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Every way a run can end: its exit code, its JSON object, and what is on standard output and standard error."""
import json
import os
import signal
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import DEFAULT_MEMORY, earmark, program, repartition_arguments, snapshot
from parquet_data import numbered, write

SUMMARY = {"rows": int, "files": int, "bytes_in": int, "bytes_out": int, "seconds": float, "limit_bytes": int,
           "baseline_bytes": int, "peak_resident_bytes": int, "tiers": dict, "spilled_bytes": int, "waits": int,
           "wait_seconds": (int, float), "verified": bool}


@pytest.fixture
def place(tmp_path):
    """A folder with good and bad input, and a full output."""
    write(numbered(100, k=pa.array(range(100)), l=pa.array([[1]] * 100)), tmp_path / "good.parquet")
    write(numbered(5, k=pa.array(["a"] * 5), l=pa.array([[1]] * 5)), tmp_path / "other.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1, not really")
    whole = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:len(whole) // 2])
    broken = bytearray(whole)
    chunk = pq.read_metadata(tmp_path / "good.parquet").row_group(0).column(0)
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    broken[at:at + 20] = b"\xff" * 20
    (tmp_path / "broken.parquet").write_bytes(broken)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("kept")
    (tmp_path / "file").write_text("kept")
    return tmp_path


def job(*inputs, by="k", partitions=2, output="out", memory=DEFAULT_MEMORY):
    return repartition_arguments(list(inputs), by, partitions, output, memory)


GOOD = "good.parquet"
# What is run in the folder; exit code; kind; what the error tells beside kind and message.
FAILURES = {
    "no command": ([], 2, "usage", {}),
    "an unknown command": (["partition"], 2, "usage", {}),
    "an unknown option": ([*job(GOOD), "--nonsense"], 2, "usage", {}),
    "an option without its value": (["repartition", GOOD, "--by"], 2, "usage", {}),
    "a missing option": (["repartition", GOOD], 2, "usage", {}),
    "no input": (job(), 2, "usage", {}),
    "no partitions": (job(GOOD, partitions=0), 2, "usage", {}),
    "too many partitions": (job(GOOD, partitions=1 << 31), 2, "usage", {}),
    "no memory": (job(GOOD, memory="0"), 2, "usage", {}),
    "more than all memory": (job(GOOD, memory="101%"), 2, "usage", {}),
    "an overflowing size": (job(GOOD, memory="16EiB"), 2, "usage", {}),
    "a key named twice": (job(GOOD, by="k,k"), 2, "usage", {}),
    "a column named twice": ([*job(GOOD), "--columns", "k,k"], 2, "usage", {}),
    "an option of another command": (["info", "--by", "k"], 2, "usage", {}),
    "an output that is not empty": (job(GOOD, output="full"), 2, "output", {}),
    "an output that is a file": (job(GOOD, output="file"), 2, "output", {}),
    "an output above the input": ([*job(GOOD, output="."), "--overwrite"], 2, "output", {}),
    "an output below the input": (job(GOOD, output="good.parquet/out"), 2, "output", {}),
    "a missing input": (job("none.parquet"), 3, "input", {"file": "none.parquet"}),
    "a pattern that matches nothing": (job("none*.parquet"), 3, "input", {"file": "none*.parquet"}),
    "what is not Parquet": (job("bad.parquet"), 3, "input", {"file": "bad.parquet"}),
    "a file cut short": (job("cut.parquet"), 3, "input", {"file": "cut.parquet"}),
    "a broken page": (job("broken.parquet"), 3, "input", {"file": "broken.parquet", "column": "row", "row_group": 0}),
    "two schemas": (job(GOOD, "other.parquet"), 3, "input", {"file": "other.parquet", "column": "k"}),
    "an unknown key": (job(GOOD, by="nope"), 3, "input", {"file": GOOD, "column": "nope"}),
    "a nested key": (job(GOOD, by="l"), 3, "input", {"file": GOOD, "column": "l"}),
    "an unknown column": ([*job(GOOD), "--columns", "nope"], 3, "input", {"file": GOOD, "column": "nope"}),
    "too little memory": (job(GOOD, memory="1MiB"), 4, "memory", {"limit_bytes": 1 << 20, "least_bytes": ...}),
    "a parent that is a file": (job(GOOD, output="file/out"), 5, "disk", {"file": ...}),
    "a name that is too long": (job(GOOD, output="o" * 256), 5, "disk", {"file": ...}),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_has_its_exit_code_and_its_kind(place, case):
    arguments, code, kind, fields = FAILURES[case]
    before = snapshot(place)
    text = earmark(*arguments, cwd=place)
    assert text.code == code and text.stdout == "", text
    assert "earmark: error: " in text.stderr and "Traceback" not in text.stderr
    outcome = earmark(*arguments, "--json", cwd=place)
    assert outcome.code == code, outcome
    assert set(outcome.json) == {"error"}
    error = outcome.error
    assert error["kind"] == kind and error["message"] in outcome.stderr, outcome
    assert set(error) == {"kind", "message", *fields}, error
    for name, value in fields.items():
        assert value is ... or error[name] == value or str(error[name]).endswith(str(value)), error
    assert snapshot(place) == before


@pytest.mark.parametrize("more", [[], ["--verify"], ["--columns", "row"], ["--overwrite"], ["--threads", "1"]])
def test_success_is_0_with_every_key_of_the_summary(place, more):
    outcome = earmark(*job(GOOD), "--json", *more, cwd=place)
    assert outcome.code == 0 and outcome.stderr == "", outcome
    assert set(outcome.json) == set(SUMMARY)
    for name, kind in SUMMARY.items():
        assert isinstance(outcome.json[name], kind), (name, outcome.json)
    assert outcome.json["tiers"]["host"]["peak_bytes"] > 0
    assert outcome.json["verified"] == ("--verify" in more)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_before_the_work_begins_is_an_interruption(place, number, code):
    """The signal waits, blocked, until the command is ready for it."""
    def send():
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])
        os.kill(os.getpid(), number)

    outcome = earmark(*job(GOOD), "--json", cwd=place, preexec_fn=send)
    assert outcome.code in (code, 0), outcome  # a job this small may be done before the signal is seen
    if outcome.code:
        assert outcome.error["kind"] == "interrupted"
        assert not os.path.exists(place / "out")


def run_with_standard_output(descriptor, arguments, cwd):
    return subprocess.run([program(), *map(str, arguments)], stdout=descriptor, stderr=subprocess.PIPE, text=True,
                          cwd=cwd)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["repartition", "--help"], ["info"],
                                       ["info", "--json"], job(GOOD), [*job(GOOD, output="other"), "--json"]])
def test_a_full_standard_output_is_5(place, arguments):
    with open("/dev/full", "w") as full:
        result = run_with_standard_output(full, arguments, place)
    assert result.returncode == 5 and "earmark: error: cannot write to standard output" in result.stderr, result


def test_a_failure_keeps_its_code_when_nobody_hears_of_it(place):
    with open("/dev/full", "w") as full:
        assert run_with_standard_output(full, [*job("bad.parquet"), "--json"], place).returncode == 3
        assert run_with_standard_output(full, ["--nonsense", "--json"], place).returncode == 2
    result = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", program(), *map(str, job("bad.parquet"))], cwd=place)
    assert result.returncode == 3


def test_a_full_standard_error_changes_nothing(place):
    with open("/dev/full", "w") as full:
        result = subprocess.run([program(), *map(str, job(GOOD)), "--json", "--progress", "always"], stderr=full,
                                stdout=subprocess.PIPE, text=True, cwd=place)
    assert result.returncode == 0 and json.loads(result.stdout)["rows"] == 100


def test_json_is_one_line_whatever_the_names_hold(place):
    name = b'a\n"b" \xff.parquet'
    os.rename(place / "bad.parquet", os.fsencode(place) + b"/" + name)
    outcome = earmark("repartition", os.fsdecode(os.fsencode(place) + b"/" + name), *job()[1:], "--json")
    assert outcome.code == 3 and "\ufffd" in outcome.error["file"], outcome
