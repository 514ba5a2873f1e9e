#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Checks a repartitioned data set with readers that are not Earmark's: DuckDB compares the rows, pyarrow the schema.

Usage: check_partitioned.py INPUT OUTPUT --by COL[,COL] --partitions N [--memory SIZE]
INPUT is a Parquet file or a folder of them, OUTPUT a folder. --memory only says how the limit compares with the data.
"""

import argparse
import re
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as parquet

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def bytes_of(text):
    number, unit = re.fullmatch(r"([\d.]+)\s*(\w*)", text).groups()
    unit = unit.lower()
    return float(number) * UNITS.get(unit, UNITS.get(unit.replace("ib", "").replace("i", ""), 1))


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Check:
    def __init__(self):
        self.failed = False

    def __call__(self, holds, text):
        print(f"  {'ok  ' if holds else 'FAIL'} {text}")
        self.failed |= not holds


def rows_and_sums(connection, files, columns):
    """The number of rows and, whatever the rows' order, a sum of hashes per column and of whole rows."""
    sums = [f"sum(hash({quoted(column)})::HUGEINT)" for column in columns]
    sums.append(f"sum(hash({', '.join(map(quoted, columns))})::HUGEINT)")
    return connection.execute(f"SELECT count(*), {', '.join(sums)} FROM read_parquet($files)", {"files": files}).fetchone()


def arrow_bytes(files):
    total = 0
    for file in files:
        for batch in parquet.ParquetFile(file).iter_batches():
            total += batch.nbytes
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--by", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--memory")
    options = parser.parse_args()

    check = Check()
    inputs = sorted(map(str, options.input.rglob("*.parquet") if options.input.is_dir() else [options.input]))
    outputs = sorted(map(str, options.output.iterdir()))
    expected = [str(options.output / f"part-{number:05}.parquet") for number in range(options.partitions)]
    if outputs != expected:
        sys.exit(f"{options.output} has {len(outputs)} files, not part-00000 to part-{options.partitions - 1:05}")
    check(True, f"the output folder has {len(outputs)} files, part-00000 to part-{len(outputs) - 1:05}")

    schemas = [parquet.read_schema(name) for name in [inputs[0], *outputs]]
    check(all(schema.equals(schemas[0], check_metadata=True) for schema in schemas),
          f"every file has the input's schema ({len(schemas[0])} columns) and metadata, as pyarrow reads them")

    connection = duckdb.connect()
    columns = schemas[0].names
    before, after = (rows_and_sums(connection, files, columns) for files in (inputs, outputs))
    check(before[0] == after[0], f"rows: {before[0]:,} in, {after[0]:,} out")
    unequal = [column for column, a, b in zip(columns, before[1:], after[1:]) if a != b]
    check(not unequal, "every column has the same values" if not unequal else f"values differ in: {', '.join(unequal)}")
    check(before[-1] == after[-1], "the rows are the same rows (order-free sum of row hashes)")

    keys = ", ".join(map(quoted, options.by.split(",")))
    distinct, split = connection.execute(
        "SELECT count(*), count(*) FILTER (files > 1) FROM (SELECT count(DISTINCT filename) AS files "
        f"FROM read_parquet($files, filename = true) GROUP BY {keys})", {"files": outputs}).fetchone()
    check(split == 0, f"each of the {distinct:,} keys is in one file only")

    if options.memory:
        size = arrow_bytes(inputs)
        print(f"  the data is {size:,} bytes as Arrow; the limit of {options.memory} is "
              f"{100 * bytes_of(options.memory) / size:.0f} % of that")
    if check.failed:
        sys.exit("the output is wrong")


main()
