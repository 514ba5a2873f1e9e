# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Sudden ends at random points, folders and inputs that change under a running job, and stops in the middle of a value."""
import os
import random
import shutil
import signal
import subprocess
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import (Running, earmark, expect_refusal, program, repartition, repartition_arguments, snapshot,
                             unsanitized)
from parquet_data import kept_file, numbered, part_names, write

SEED = int(os.environ.get("EARMARK_SEED", "1"))
ROUNDS = int(os.environ.get("EARMARK_ROUNDS", "3"))
PARTS = 6


def make_medium(path):
    import numpy
    rng = numpy.random.default_rng(5)
    rows = 400_000
    columns = {"k": rng.integers(0, 1 << 40, rows), **{f"c{i}": rng.random(rows) for i in range(6)}}
    pq.write_table(pa.table({"row": pa.array(range(rows)), **columns}), path, row_group_size=50_000)


@pytest.fixture
def medium():
    return kept_file("medium", make_medium)


@pytest.fixture
def small(tmp_path):
    return write(numbered(100, k=pa.array(range(100))), tmp_path / "in.parquet")


def hidden_folders(folder):
    return [os.path.join(folder, name) for name in os.listdir(folder) if ".earmark-" in name]


def bytes_below(folder):
    total = 0
    for place in hidden_folders(folder):
        try:
            total += sum(entry.stat().st_size for entry in os.scandir(place))
        except FileNotFoundError:  # renamed or removed meanwhile
            pass
    return total


def wait_for_bytes(running, folder, wanted):
    """Returns once the job has written so much, or has ended."""
    while running.process.poll() is None and bytes_below(folder) < wanted:
        pass


def run_to_random_point(rng, arguments, folder, total):
    running = Running(*arguments, "--json")
    wait_for_bytes(running, folder, rng.randrange(total))
    return running


# Sudden ends.

@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_after_an_end_at_a_random_point_the_next_job_gives_the_whole_result(tmp_path, medium, number):
    rng = random.Random(SEED * 1000 + number)
    whole = repartition(medium, "k", PARTS, tmp_path / "whole")["bytes_out"]
    wanted = snapshot(tmp_path / "whole")
    (tmp_path / "place").mkdir()
    arguments = repartition_arguments(medium, "k", PARTS, tmp_path / "place" / "out")
    for _ in range(ROUNDS):
        with run_to_random_point(rng, arguments, tmp_path / "place", whole) as running:
            running.send(number)
            outcome = running.wait()
        assert outcome.code in (0, -9, 130, 143), outcome
        left = os.listdir(tmp_path / "place")
        if outcome.code == 0:
            assert left == ["out"]
        elif outcome.code != -9:
            assert left == []
        else:
            assert len(left) <= 1 and all(name == "out" or name.startswith(".out.earmark-") for name in left), left
        assert earmark(*arguments, "--overwrite").code == 0
        assert os.listdir(tmp_path / "place") == ["out"]
        assert rows_of(tmp_path / "place" / "out") == rows_of(tmp_path / "whole")
        shutil.rmtree(tmp_path / "place" / "out")
    assert wanted == snapshot(tmp_path / "whole")


def rows_of(output):
    return [pq.read_table(os.path.join(output, name)) for name in part_names(PARTS)]


def test_a_kill_in_the_middle_of_replacing_leaves_the_old_output_or_the_new(tmp_path, medium, small):
    rng = random.Random(SEED)
    whole = repartition(medium, "k", PARTS, tmp_path / "whole")["bytes_out"]
    (tmp_path / "place").mkdir()
    target = tmp_path / "place" / "out"
    arguments = [*repartition_arguments(medium, "k", PARTS, target), "--overwrite"]
    for _ in range(ROUNDS):
        repartition(small, "k", 2, target, "--overwrite")
        old = snapshot(target)
        with run_to_random_point(rng, arguments, tmp_path / "place", whole) as running:
            running.send(signal.SIGKILL)
            running.wait()
        if snapshot(target) != old:
            assert rows_of(target) == rows_of(tmp_path / "whole")


def test_replacing_jobs_with_one_target_leave_one_whole_result(tmp_path, medium):
    counts = (2, 3, 4)
    jobs = [Running(*repartition_arguments(medium, "k", count, tmp_path / "out"), "--overwrite") for count in counts]
    outcomes = [job.wait() for job in jobs]
    assert {outcome.code for outcome in outcomes} <= {0, 2, 5}, outcomes
    assert any(outcome.code == 0 for outcome in outcomes), outcomes
    assert os.listdir(tmp_path) == ["out"]
    names = sorted(os.listdir(tmp_path / "out"))
    assert names in [part_names(count) for count in counts]
    assert sum(pq.read_metadata(tmp_path / "out" / name).num_rows for name in names) == 400_000


# Folders that change.

def test_a_hidden_folder_that_is_removed_is_an_error_of_the_file_system(tmp_path, medium):
    with Running(*repartition_arguments(medium, "k", PARTS, tmp_path / "out")) as running:
        wait_for_bytes(running, tmp_path, 100_000)
        for place in hidden_folders(tmp_path):
            shutil.rmtree(place)
        outcome = running.wait()
    assert outcome.code == 5, outcome
    assert os.listdir(tmp_path) == []


@pytest.fixture
def open_place():
    """A folder of nobody's."""
    place = tempfile.mkdtemp(prefix="earmark-test-")
    os.chown(place, 65534, 65534)
    yield place
    os.chmod(place, 0o755)
    shutil.rmtree(place)


def test_a_folder_that_becomes_read_only_is_an_error_of_the_file_system(open_place, medium):
    """Root may write everywhere, so the job is nobody's."""
    if os.getuid() != 0:
        pytest.skip("becoming another user needs root")
    source = shutil.copy(medium, open_place)
    os.chmod(source, 0o644)
    arguments = [program(), *map(str, repartition_arguments(source, "k", PARTS, os.path.join(open_place, "out")))]
    if subprocess.run([program(), "--version"], user=65534, group=65534, capture_output=True).returncode != 0:
        pytest.skip("nobody may not run the program here")
    process = subprocess.Popen(arguments, user=65534, group=65534, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and bytes_below(open_place) < 100_000:
        pass
    os.chmod(open_place, 0o555)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 5 and b"Permission denied" in stderr, stderr
    assert not os.path.exists(os.path.join(open_place, "out"))
    os.chmod(open_place, 0o755)
    repartition(source, "k", PARTS, os.path.join(open_place, "out"))
    assert sorted(os.listdir(open_place)) == sorted(["out", os.path.basename(source)])


@pytest.fixture
def mounted(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", place], capture_output=True).returncode != 0:
        pytest.skip("mounting a disk needs root")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_kill_while_a_mount_point_is_filled_is_mended_by_the_next_job(tmp_path, mounted, medium, small):
    with Running(*repartition_arguments(medium, "k", PARTS, mounted)) as running:
        wait_for_bytes(running, mounted, 100_000)
        running.send(signal.SIGKILL)
        running.wait()
    assert "_SUCCESS" not in os.listdir(mounted)
    repartition(small, "k", 3, mounted)
    assert sorted(os.listdir(mounted)) == ["_SUCCESS", *part_names(3)]


# Inputs that change.

def change_in_place(path):
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b"\xff" * 100_000)


def change_size(path):
    os.truncate(path, os.path.getsize(path) // 2)


def change_file(path):
    shutil.copy(path, path + ".new")
    os.replace(path + ".new", path)


@pytest.mark.parametrize("change", [change_in_place, change_size, change_file, os.remove], ids=lambda f: f.__name__)
def test_an_input_that_changes_is_told_and_leaves_nothing(tmp_path, medium, change):
    (tmp_path / "place").mkdir()
    source = str(shutil.copy(medium, tmp_path / "in.parquet"))
    with Running(*repartition_arguments(source, "k", PARTS, tmp_path / "place" / "out"), "--json") as running:
        wait_for_bytes(running, tmp_path / "place", 100_000)
        change(source)
        outcome = running.wait()
    assert outcome.code == 3, outcome
    assert outcome.error["file"] == source
    assert os.listdir(tmp_path / "place") == []


# Stops.

def make_one_huge_value(path):
    import numpy
    text = (numpy.random.default_rng(3).integers(0, 64, 200 << 20, dtype=numpy.uint8) + 48).tobytes()
    pq.write_table(pa.table({"k": [1], "s": pa.array([text], pa.binary())}), path, use_dictionary=False,
                   compression="none", write_statistics=False)


@unsanitized
@pytest.mark.parametrize("codec", ["zstd:22", "brotli", "gzip"])
def test_a_stop_need_not_wait_for_a_huge_value(tmp_path, codec):
    """Compressing all of it would outlast the time that a test has."""
    source = kept_file("huge", make_one_huge_value)
    arguments = [*repartition_arguments(source, "k", 1, tmp_path / "out", "4GiB"), "--compression", codec]
    with Running(*arguments) as running:
        while running.process.poll() is None and not hidden_folders(tmp_path):
            pass
        running.send(signal.SIGTERM)
        outcome = running.wait()
    assert outcome.code == 143, outcome
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_when_the_job_runs_into_it_again(mounted, medium):
    """The same job fails the same way each time, and works once there is room."""
    filler = mounted / "filler"
    filler.write_bytes(bytes(250 << 20))
    for _ in range(2):
        expect_refusal("disk", repartition_arguments(medium, "k", PARTS, mounted / "out"), mounted, "No space left")
    filler.unlink()
    repartition(medium, "k", PARTS, mounted / "out")
