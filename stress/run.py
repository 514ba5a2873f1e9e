# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the command on inputs of extreme shape, at the least memory that it asks for, and prints a line for each:
seconds, least, peak resident size and, for the shapes of memory, the least that bisection finds with the refusal off.
Then the tests that draw lots run for more rounds: sudden ends, and damaged files.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import numpy
import pyarrow.parquet as pq

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

from earmark_command import earmark, earmark_measured, repartition_arguments  # noqa: E402
from memory_shapes import MEMORY_SHAPES  # noqa: E402
from shapes import SHAPES  # noqa: E402

MIB = 1 << 20
BUILD = os.path.join(ROOT, "build")
DRAWN = {
    "sudden ends": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                    os.path.join(ROOT, "tests", "cli", "faults_test.py")],
    "damaged files": [os.path.join(BUILD, "tests", "ops_corrupt_input_test"), "--gtest_brief=1"],
}
TIMEOUT = 3600
MOST_LEAST_RATIO = 1.3


class Failed(Exception):
    pass


def arguments_for(case, output, memory):
    return [*repartition_arguments(case.inputs, case.by, case.partitions, output, memory), "--json", *case.more]


def stated_least(case, folder):
    outcome = earmark(*arguments_for(case, os.path.join(folder, "out"), MIB), timeout=TIMEOUT)
    if outcome.code != 4:
        raise Failed(f"1 MiB is not refused: {outcome}")
    return outcome.error["least_bytes"]


def sums_of(files, columns):
    """The number of rows, and for each column a sum of hashes that does not depend on their order."""
    import duckdb
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '4GB'")
    sums = ", ".join(["count(*)", *(f'sum(hash("{column}")::HUGEINT)' for column in columns)])
    return connection.execute(f"SELECT {sums} FROM read_parquet($files)", {"files": files}).fetchone()


def files_of(inputs):
    for path in inputs:
        if os.path.isdir(path):
            yield from sorted(os.path.join(path, name) for name in os.listdir(path))
        else:
            yield path


def check_result(case, output, summary):
    parts = sorted(os.path.join(output, name) for name in os.listdir(output))
    if len(parts) != case.partitions:
        raise Failed(f"{len(parts)} files instead of {case.partitions}")
    rows = sum(pq.read_metadata(part).num_rows for part in parts)
    sources = list(files_of(case.inputs))
    known = {path: pq.read_metadata(path).num_rows for path in set(sources)}
    wanted = sum(known[path] for path in sources)
    if not rows == wanted == summary["rows"]:
        raise Failed(f"{wanted} rows in, {rows} rows out, {summary['rows']} told")
    columns = pq.read_schema(parts[0]).names if case.checked is None else case.checked
    if columns and sums_of(sources, columns) != sums_of(parts, columns):
        raise Failed("the values differ")


def run_at(case, folder, limit, *more):
    output = os.path.join(folder, "out")
    outcome = earmark_measured(folder, *arguments_for(case, output, limit), *more, timeout=TIMEOUT)
    if outcome.code not in (0, 4):
        raise Failed(str(outcome))
    return outcome


def true_least(case, folder, works):
    """Bisection: the least limit with which the job works when nothing is refused beforehand."""
    fails = MIB
    while works > 1.02 * fails and works - fails > MIB:
        middle = (works + fails) // 2
        outcome = run_at(case, folder, middle, "--no-admission-check")
        shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
        fails, works = (fails, middle) if outcome.code == 0 and outcome.peak_bytes <= middle else (middle, works)
    return works


def run_drawn(name, command, options):
    """Tests that draw lots, with another seed and for more rounds."""
    environment = {**os.environ, "EARMARK_SEED": str(options.seed), "EARMARK_ROUNDS": str(options.rounds)}
    began = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT)
    if result.returncode != 0:
        raise Failed(result.stdout[-4000:])
    return f"{time.monotonic() - began:8.1f} s"


def run_case(name, make, options):
    if isinstance(make, list):
        return run_drawn(name, make, options)
    folder = tempfile.mkdtemp(prefix="earmark-stress-", dir=options.folder)
    try:
        rng = numpy.random.default_rng([options.seed, zlib.crc32(name.encode())])
        inputs = os.path.join(folder, "in")
        os.mkdir(inputs)
        case = make(inputs, rng)
        least = stated_least(case, folder)
        began = time.monotonic()
        outcome = run_at(case, folder, least)
        seconds = time.monotonic() - began
        if outcome.code != 0:
            raise Failed(f"{least / MIB:.0f} MiB were said to do: {outcome}")
        line = f"{seconds:8.1f} s  least {least / MIB:7.0f} MiB  peak {outcome.peak_bytes / MIB:7.0f} MiB"
        if outcome.peak_bytes > least:
            raise Failed(f"{line}: above the limit")
        check_result(case, os.path.join(folder, "out"), outcome.json)
        shutil.rmtree(os.path.join(folder, "out"))
        if options.least or name in MEMORY_SHAPES:
            found = true_least(case, folder, least)
            line += f"  bisection {found / MIB:7.0f} MiB  ratio {least / found:.2f}"
            if least > MOST_LEAST_RATIO * found:
                raise Failed(f"{line}: asks for too much")
        return line
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10, help="of the tests that draw lots")
    parser.add_argument("--folder", help="where inputs and outputs go (up to 10 GB)")
    parser.add_argument("--least", action="store_true", help="bisection for all shapes")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    cases = {**SHAPES, **MEMORY_SHAPES, **DRAWN}
    if options.list:
        print("\n".join(cases))
        return 0
    failures = 0
    for name, make in cases.items():
        if options.only not in name:
            continue
        try:
            line, verdict = run_case(name, make, options), "ok"
        except Exception as error:  # any failure of one case is a line of its own, and the next case runs
            line, verdict = f"{type(error).__name__}: {error}", "FAIL"
            failures += 1
        print(f"{verdict:4} {name:32} {line}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
