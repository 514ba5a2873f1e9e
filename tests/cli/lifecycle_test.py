# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Beginning, end, and sudden end of a job: signals, full disks, several jobs at once, dead jobs, terminals."""
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import (Running, earmark, expect_refusal, program, repartition, repartition_arguments,
                             snapshot, unsanitized)
from parquet_data import check_result, kept_file, numbered, part_names, write


@pytest.fixture
def small(tmp_path):
    return write(numbered(100, k=pa.array(range(100))), tmp_path / "in.parquet")


def make_big(path):
    """Enough work to be interrupted in the middle: wide, with long strings, hard to compress."""
    import numpy
    rng = numpy.random.default_rng(1)
    rows = 1_500_000
    columns = {"k": rng.integers(0, 1 << 40, rows), **{f"c{i}": rng.random(rows) for i in range(8)}}
    columns["s"] = pa.array(columns["k"].astype(str))
    pq.write_table(pa.table(columns), path, row_group_size=100_000, compression="snappy")


@pytest.fixture
def big():
    return kept_file("big", make_big)


def wait_for_hidden_folder(folder, process):
    """Returns once the job works on its output; what to wait for is there to be seen, so no time is guessed."""
    while process.poll() is None:
        hidden = [name for name in os.listdir(folder) if name.startswith(".out.earmark-")]
        if any(os.listdir(os.path.join(folder, name)) for name in hidden):
            return hidden
    pytest.fail("the job ended before it could be interrupted")


# Signals.

@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_ends_the_job_and_leaves_nothing(tmp_path, big, number, code):
    with Running(*repartition_arguments(big, "k", 8, tmp_path / "out"), "--threads", 2, "--json") as running:
        wait_for_hidden_folder(tmp_path, running.process)
        running.send(number)
        outcome = running.wait()
    assert outcome.code == code, outcome
    assert outcome.error["kind"] == "interrupted"
    assert os.listdir(tmp_path) == []


def test_a_signal_leaves_the_old_output_as_it_was(tmp_path, big, small):
    repartition(small, "k", 3, tmp_path / "out")
    before = snapshot(tmp_path)
    with Running(*repartition_arguments(big, "k", 8, tmp_path / "out"), "--overwrite") as running:
        wait_for_hidden_folder(tmp_path, running.process)
        running.send(signal.SIGINT)
        outcome = running.wait()
    assert outcome.code == 130, outcome
    assert snapshot(tmp_path) == before


def test_more_signals_do_not_cut_the_clean_up_short(tmp_path, big):
    with Running(*repartition_arguments(big, "k", 64, tmp_path / "out")) as running:
        wait_for_hidden_folder(tmp_path, running.process)
        while running.process.poll() is None:
            running.send(signal.SIGINT)
            running.send(signal.SIGTERM)
        outcome = running.wait()
    assert outcome.code == 130, outcome
    assert os.listdir(tmp_path) == []


def test_a_job_in_a_shells_background_can_be_interrupted(tmp_path, big):
    """Shells start such jobs with SIGINT ignored."""
    arguments = [program(), *map(str, repartition_arguments(big, "k", 8, tmp_path / "out"))]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_for_hidden_folder(tmp_path, process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130 and os.listdir(tmp_path) == []


def test_a_job_under_nohup_survives_the_end_of_its_terminal(tmp_path, small):
    arguments = [program(), *map(str, repartition_arguments(small, "k", 3, tmp_path / "out"))]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.communicate()
    assert process.returncode == 0 and sorted(os.listdir(tmp_path / "out")) == part_names(3)


# Dead jobs and jobs beside each other.

def test_what_a_killed_job_leaves_is_removed_by_the_next(tmp_path, big, small):
    with Running(*repartition_arguments(big, "k", 8, tmp_path / "out")) as running:
        hidden = wait_for_hidden_folder(tmp_path, running.process)
        running.send(signal.SIGKILL)
        running.wait()
    assert [name for name in os.listdir(tmp_path) if name != "in.parquet"] == hidden
    repartition(small, "k", 3, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["in.parquet", "out"]


def test_hidden_folders_of_other_targets_stay(tmp_path, small):
    for name in (".other.earmark-1-0", ".out", ".out.other"):
        (tmp_path / name).mkdir()
    repartition(small, "k", 3, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [".other.earmark-1-0", ".out", ".out.other", "in.parquet", "out"]


def test_jobs_beside_each_other_do_not_disturb_each_other(tmp_path, big):
    source = pq.read_metadata(big).num_rows
    with Running(*repartition_arguments(big, "k", 5, tmp_path / "one"), "--json") as one, \
            Running(*repartition_arguments(big, "k", 3, tmp_path / "two"), "--json") as two:
        outcomes = [one.wait(), two.wait()]
    for outcome, name, count in zip(outcomes, ("one", "two"), (5, 3)):
        assert outcome.code == 0 and outcome.json["rows"] == source, outcome
        assert sorted(os.listdir(tmp_path / name)) == part_names(count)
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_jobs_with_one_target_leave_one_whole_result(tmp_path, small):
    jobs = [Running(*repartition_arguments(small, "k", count, tmp_path / "out")) for count in (2, 3, 4, 5)]
    outcomes = [job.wait() for job in jobs]
    codes = [outcome.code for outcome in outcomes]
    assert codes.count(0) == 1 and set(codes) == {0, 2}, outcomes
    winner = (2, 3, 4, 5)[codes.index(0)]
    check_result(pq.read_table(small), tmp_path / "out", ["k"], winner)
    assert sorted(os.listdir(tmp_path)) == ["in.parquet", "out"]


# Disks.

@pytest.fixture
def small_disk(tmp_path):
    """A disk of four MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_told_and_leaves_nothing(small_disk, big):
    error = expect_refusal("disk", repartition_arguments(big, "k", 8, small_disk / "out"), small_disk,
                           "No space left on device")
    assert ".out.earmark-" in error["file"]


def test_a_full_disk_leaves_the_old_output_as_it_was(small_disk, big, small):
    repartition(small, "k", 3, small_disk / "out")
    arguments = repartition_arguments(big, "k", 8, small_disk / "out")
    expect_refusal("disk", [*arguments, "--overwrite"], small_disk, "No space left on device")


def test_a_mount_point_is_filled_file_by_file_with_the_marker_last(small_disk, small):
    repartition(small, "k", 3, small_disk)
    assert sorted(os.listdir(small_disk)) == ["_SUCCESS", *part_names(3)]
    outcome = earmark(*repartition_arguments(small, "k", 2, small_disk))
    assert outcome.code == 2, outcome
    repartition(small, "k", 2, small_disk, "--overwrite")
    assert sorted(os.listdir(small_disk)) == ["_SUCCESS", *part_names(2)]


def test_too_few_descriptors_are_an_error_of_the_file_system_or_enough(tmp_path, small):
    import resource
    arguments = repartition_arguments(small, "k", 200, tmp_path / "out")
    outcome = earmark(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    if outcome.code != 0:
        assert outcome.code == 5 and "Too many open files" in outcome.stderr, outcome
        assert sorted(os.listdir(tmp_path)) == ["in.parquet"]


def test_a_limit_on_the_size_of_files_is_an_error_of_the_file_system(tmp_path, big):
    import resource
    arguments = repartition_arguments(big, "k", 3, tmp_path / "out")
    outcome = earmark(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert outcome.code == 5 and "File too large" in outcome.stderr, outcome
    assert os.listdir(tmp_path) == []


@unsanitized
def test_a_limit_on_the_address_space_is_told_and_never_a_crash(tmp_path, small):
    import resource
    # The least of these lets no thread start, or not even the program: then the loader says so, with code 127.
    for mebibytes in (52, 56, 60, 64, 72, 80, 96, 112, 136, 160):
        limit = mebibytes << 20
        outcome = earmark(*repartition_arguments(small, "k", 3, tmp_path / "out"), "--threads", 4, "--overwrite",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        assert outcome.code in (0, 1, 4, 127), outcome
        assert "defect" not in outcome.stderr, outcome
        assert outcome.code == 0 or outcome.stderr != "", outcome
        assert set(os.listdir(tmp_path)) <= {"in.parquet", "out"}


def test_a_file_that_disappears_before_the_end_is_an_error_of_the_file_system(tmp_path, big):
    with Running(*repartition_arguments(big, "k", 8, tmp_path / "out")) as running:
        hidden = wait_for_hidden_folder(tmp_path, running.process)
        place = tmp_path / hidden[0]
        os.remove(place / sorted(os.listdir(place))[0])
        outcome = running.wait()
    assert outcome.code == 5, outcome
    assert os.listdir(tmp_path) == []


def test_a_file_that_comes_where_the_output_was_to_be_stays(tmp_path, big):
    with Running(*repartition_arguments(big, "k", 8, tmp_path / "out"), "--overwrite") as running:
        wait_for_hidden_folder(tmp_path, running.process)
        (tmp_path / "out").write_text("theirs")
        outcome = running.wait()
    assert outcome.code == 2 and "folder" in outcome.stderr, outcome
    assert snapshot(tmp_path) == {"out": b"theirs"}


@pytest.mark.parametrize("length", [240, 255])
def test_the_output_may_have_a_long_name(tmp_path, small, length):
    repartition(small, "k", 3, tmp_path / ("n" * length))
    assert sorted(os.listdir(tmp_path)) == ["in.parquet", "n" * length]


def test_an_output_folder_that_disappears_is_an_error_of_the_file_system(tmp_path, big):
    (tmp_path / "parent").mkdir()
    with Running(*repartition_arguments(big, "k", 8, tmp_path / "parent" / "out")) as running:
        wait_for_hidden_folder(tmp_path / "parent", running.process)
        os.rename(tmp_path / "parent", tmp_path / "moved")
        outcome = running.wait()
    assert outcome.code == 5, outcome


# Terminals.

def run_on_terminal(arguments, columns, environment):
    """Runs the command with a terminal as standard error. Returns: exit code, standard output, what was drawn."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    process = subprocess.Popen([program(), *map(str, arguments)], stderr=theirs, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TERM": "xterm", "LC_ALL": "C", **environment})
    os.close(theirs)
    drawn = []

    def read():
        try:
            while chunk := os.read(ours, 65536):
                drawn.append(chunk)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    stdout, _ = process.communicate()
    reader.join()
    os.close(ours)
    return process.returncode, stdout, b"".join(drawn).decode()


def frames_of(drawn):
    return drawn.split("\r\x1b[K")[1:]


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_the_bar_fits_the_terminal_and_goes_away(tmp_path, big, columns):
    arguments = [*repartition_arguments(big, "k", 4, tmp_path / "out")]
    code, stdout, drawn = run_on_terminal(arguments, columns, {"NO_COLOR": "1"})
    assert code == 0 and "Wrote 4 files" in stdout
    frames = frames_of(drawn)
    assert len(frames) > 1 and frames[-1] == "", drawn
    assert all(len(frame) < columns for frame in frames)
    assert all(" %" in frame for frame in frames[:-1])
    assert "\x1b" not in "".join(frames)


def test_the_bar_goes_away_before_an_error(tmp_path, big):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(open(big, "rb").read())
    chunk = pq.read_metadata(big).row_group(10).column(8)
    with open(broken, "r+b") as file:
        file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
        file.write(b"\xff" * 64)
    code, _, drawn = run_on_terminal(repartition_arguments(broken, "k", 4, tmp_path / "out"), 80, {"NO_COLOR": "1"})
    assert code == 3
    last = drawn.split("\r\x1b[K")[-1]
    assert last.startswith("earmark: error: "), drawn


def test_colours_are_there_unless_refused(tmp_path, big):
    _, _, drawn = run_on_terminal(repartition_arguments(big, "k", 4, tmp_path / "one"), 80, {"NO_COLOR": ""})
    assert "\x1b[32m" in drawn
    _, _, drawn = run_on_terminal(repartition_arguments(big, "k", 4, tmp_path / "two"), 80, {"TERM": "dumb"})
    assert "\x1b" not in drawn


def test_no_progress_is_told_when_none_is_wanted(tmp_path, small):
    arguments = [*repartition_arguments(small, "k", 4, tmp_path / "out"), "--progress", "never"]
    assert run_on_terminal(arguments, 80, {})[2] == ""
