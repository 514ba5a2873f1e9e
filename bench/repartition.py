#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of `earmark repartition` (rows J1, J7 and J8), with DuckDB and Arrow C++ beside it in the same run.

Every measured job is a process of its own: wall time around it, peak resident size from wait4. This driver stays small
on purpose, because a process that is started from a large one inherits the large peak: whatever needs pyarrow or DuckDB
runs as a worker (`repartition.py _NAME ...`).
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20
KEY = "l_orderkey"
PARTITIONS = 64
LEAST_ROWS_OF_A_GROUP = 122_880


# Workers: each runs in its own process.

def work_rewrite(folder):
    """Rewrites every file of a folder as plain Snappy Parquet with plain strings, row group by row group."""
    import multiprocessing

    with multiprocessing.Pool(2) as pool:
        pool.map(rewrite_file, parquet_files(folder), 1)


def rewrite_file(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pq.ParquetFile(path)
    plain = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in source.schema_arrow]
    schema = pa.schema(plain)
    with pq.ParquetWriter(path + ".new", schema, compression="snappy") as writer:
        for group in range(source.num_row_groups):
            table = source.read_row_group(group, use_threads=False).cast(schema)
            writer.write_table(table, row_group_size=1 << 30)
    os.rename(path + ".new", path)


def work_duckdb(data, output, scratch, limit_mib, threads):
    import duckdb

    connection = duckdb.connect(config={"threads": int(threads)})
    if int(limit_mib):
        connection.execute(f"SET memory_limit='{limit_mib}MiB'")
    connection.execute(f"SET temp_directory='{scratch}'")
    connection.execute("SET preserve_insertion_order=false")
    connection.execute(
        f"COPY (SELECT *, (hash({KEY}) % {PARTITIONS})::INT AS p FROM read_parquet('{data}/*.parquet')) "
        f"TO '{output}' (FORMAT parquet, COMPRESSION snappy, PARTITION_BY (p), OVERWRITE_OR_IGNORE)")


def work_recode(data, output):
    """What decoding and encoding alone cost with Arrow C++: two processes, row group by row group."""
    import multiprocessing

    import pyarrow as pa

    pa.set_cpu_count(1)
    os.makedirs(output, exist_ok=True)
    with multiprocessing.Pool(2) as pool:
        pool.starmap(recode_file, [(path, output) for path in parquet_files(data)], 1)


def recode_file(path, output):
    import pyarrow.parquet as pq

    source = pq.ParquetFile(path, pre_buffer=False)
    target = os.path.join(output, os.path.basename(path))
    with pq.ParquetWriter(target, source.schema_arrow, compression="snappy") as writer:
        for group in range(source.num_row_groups):
            writer.write_table(source.read_row_group(group, use_threads=False), row_group_size=1 << 30)


def work_check(data, output):
    """Compares rows and values of input and output, whatever their order, and looks at the files' shape."""
    import duckdb
    import pyarrow.parquet as pq

    connection = duckdb.connect(config={"threads": 2, "memory_limit": "8GiB"})
    connection.execute("SET preserve_insertion_order=false")

    def digest(folder):
        source = f"read_parquet('{folder}/*.parquet')"
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        columns = ", ".join(f'"{name}"' for name in names)
        sums = ", ".join(f'sum(hash("{name}")::HUGEINT)' for name in names)
        return connection.execute(
            f"SELECT count(*), sum(hash({columns})::HUGEINT), {sums} FROM {source}").fetchone()

    source = f"read_parquet('{output}/*.parquet', filename=true)"
    keys_and_files, keys = connection.execute(
        f"SELECT count(*), count(DISTINCT {KEY}) FROM (SELECT DISTINCT {KEY}, filename FROM {source})").fetchone()
    small_groups = 0
    for path in parquet_files(output):
        metadata = pq.read_metadata(path)
        rows = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        small_groups += sum(count < LEAST_ROWS_OF_A_GROUP for count in rows[:-1])
    faults = []
    if digest(data) != digest(output):
        faults.append("rows differ")
    if keys_and_files != keys:
        faults.append("a key is in more than one file")
    if small_groups:
        faults.append(f"{small_groups} small row groups")
    print(json.dumps({"faults": faults}))


WORKERS = {"_rewrite": work_rewrite, "_duckdb": work_duckdb, "_recode": work_recode, "_check": work_check}


# The driver.

def parquet_files(folder):
    return sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".parquet"))


def size_of(folder):
    return sum(os.path.getsize(path) for path in parquet_files(folder))


def worker_command(name, *arguments):
    return [sys.executable, os.path.abspath(__file__), name, *map(str, arguments)]


class Run:
    """One finished process: exit code, wall seconds, peak resident bytes, standard output."""

    def __init__(self, command, timeout=1800):
        out_read, out_write = os.pipe()
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out_write, stderr=subprocess.PIPE, start_new_session=True)
        os.close(out_write)
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(timeout)
        with process.stderr:
            self.stderr = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds = time.monotonic() - start
        signal.alarm(0)
        process.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.peak_bytes = usage.ru_maxrss * 1024
        with os.fdopen(out_read) as pipe:
            self.stdout = pipe.read()

    def expect_success(self, what):
        if self.code != 0:
            sys.exit(f"{what} ended with {self.code}:\n{self.stderr or self.stdout}")
        return self


def make_data(folder, scale, files):
    """Makes lineitem once: plain strings, Snappy."""
    if os.path.isdir(folder):
        return
    draft = folder + ".draft"
    shutil.rmtree(draft, ignore_errors=True)
    note(f"making lineitem at scale {scale:g} in {folder} ...")
    generator = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    generator = generator if os.path.exists(generator) else "tpchgen-cli"
    subprocess.run([generator, "parquet", "-s", str(scale), "-T", "lineitem", "-p", str(files), "-o", draft, "-q"],
                   check=True)
    subprocess.run(worker_command("_rewrite", os.path.join(draft, "lineitem")), check=True)
    os.rename(os.path.join(draft, "lineitem"), folder)
    os.rmdir(draft)


def note(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options):
        self.options = options
        self.earmark = os.path.join(options.earmark, "earmark") if os.path.isdir(options.earmark) else options.earmark
        self.data = os.path.join(options.folder, f"lineitem-sf{options.scale:g}")
        self.scratch = os.path.join(options.folder, "bench")
        self.rows = []
        make_data(self.data, options.scale, options.files)
        self.limits = [int(text) for text in options.limits.split(",")]

    # Measuring.

    def fresh(self, name):
        path = os.path.join(self.scratch, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(self.scratch, exist_ok=True)
        return path

    def warm_up(self):
        for path in parquet_files(self.data):
            with open(path, "rb", buffering=0) as file:
                while file.read(4 * MIB):
                    pass
        os.sync()

    def run_earmark(self, memory, partitions=PARTITIONS, threads=None, extra=()):
        output = self.fresh("earmark")
        command = [self.earmark, "repartition", self.data, "--by", KEY, "--partitions", str(partitions),
                   "--output", output, "--memory", memory, "--threads", str(threads or self.options.threads),
                   "--progress", "never", "--json", *extra]
        return Run(command)

    def run_duckdb(self, limit_mib):
        scratch = self.fresh("duckdb-scratch")
        os.makedirs(scratch)
        command = worker_command("_duckdb", self.data, self.fresh("duckdb"), scratch, limit_mib, self.options.threads)
        return Run(command)

    def run_recode(self):
        return Run(worker_command("_recode", self.data, self.fresh("recode")))

    def interleaved(self, *kinds):
        """Runs each of several (what, function) in turn, as often as asked; returns the runs of each."""
        runs = [[] for _ in kinds]
        for _ in range(self.options.runs):
            for number, (what, function) in enumerate(kinds):
                os.sync()
                runs[number].append(function().expect_success(what))
                note(f"  {what}: {runs[number][-1].seconds:.2f} s, {runs[number][-1].peak_bytes / MIB:.0f} MiB")
        return runs

    # Reporting.

    def report(self, row, what, case, value, unit, peer=None, peer_value=None):
        line = {"row": row, "what": what, "case": case, "value": round(value, 3), "unit": unit}
        if peer is not None:
            line |= {"peer": peer, "peer_value": round(peer_value, 3), "ratio_to_peer": round(peer_value / value, 3)}
        self.rows.append(line)
        if self.options.json:
            print(json.dumps(line), flush=True)

    # Rows.

    def j1(self):
        what = f"repartition by {KEY} into {PARTITIONS} files, warm cache"
        peer = "DuckDB " + self.version_of("duckdb")
        self.warm_up()
        for limit in self.limits:
            ours, theirs = self.interleaved(
                (f"earmark at {limit} MiB", lambda: self.run_earmark(f"{limit}MiB")),
                (f"DuckDB at {limit} MiB", lambda: self.run_duckdb(limit)))
            self.report("J1", what, f"{limit} MiB", median_seconds(ours), "s", peer, median_seconds(theirs))
            self.report("J7", "peak resident size by limit", f"{limit} MiB", peak(ours) / limit, "x limit",
                        peer, peak(theirs) / limit)
        self.check(what)

    def check(self, what):
        """The result of the last run of earmark, compared with the input by an independent reader."""
        output = os.path.join(self.scratch, "earmark")
        found = json.loads(Run(worker_command("_check", self.data, output)).expect_success("the check").stdout)
        faults = found["faults"]
        files = len(parquet_files(output))
        if files != PARTITIONS:
            faults.append(f"{files} files")
        self.report("J1", what, "faults of the result" + "".join(f", {f}" for f in faults), len(faults), "faults")
        self.report("J1", what, "output bytes by input bytes", size_of(output) / size_of(self.data), "x input")

    def j7(self):
        for threads in sorted({2, 1} & set(range(1, self.options.threads + 1)), reverse=True):
            case = f"{threads} thread{'s' if threads > 1 else ''}"
            stated = self.stated_least(threads)
            least = self.bisect(lambda mib: self.run_earmark(f"{mib}MiB", threads=threads), stated)
            self.report("J7", "least --memory", case, least, "MiB")
            unchecked = self.bisect(
                lambda mib: self.run_earmark(f"{mib}MiB", threads=threads, extra=["--no-admission-check"]), stated)
            self.report("J7", "least --memory stated by the least that works", case, stated / unchecked, "x")
            for limit in sorted({stated, 128, *self.limits}):
                if limit < stated:
                    continue
                run = self.run_earmark(f"{limit}MiB", threads=threads).expect_success(f"earmark at {limit} MiB")
                self.report("J7", "peak resident size by limit", f"{case}, {limit} MiB",
                            run.peak_bytes / (limit * MIB), "x limit")

    def stated_least(self, threads):
        """The least limit that a refusal names, in MiB rounded up."""
        refused = self.run_earmark("1MiB", threads=threads)
        if refused.code != 4:
            sys.exit(f"1 MiB was not refused: exit code {refused.code}\n{refused.stderr}")
        return -(-json.loads(refused.stdout)["error"]["least_bytes"] // MIB)

    def bisect(self, run, works):
        """The least number of MiB that works; `works` is known or said to."""
        if run(works).code != 0:
            sys.exit(f"{works} MiB were stated as enough but did not work")
        fails = 0
        while works - fails > 1:
            middle = (works + fails) // 2
            result = run(middle)
            if result.code not in (0, 4):
                sys.exit(f"{middle} MiB ended with {result.code}:\n{result.stderr}")
            works, fails = (middle, fails) if result.code == 0 else (works, middle)
            note(f"  {middle} MiB: {'works' if result.code == 0 else 'too little'}")
        return works

    def j8(self):
        self.warm_up()
        memory = self.limits[len(self.limits) // 2]
        many, few, recode = self.interleaved(
            ("earmark, N = 64", lambda: self.run_earmark(f"{memory}MiB", partitions=64)),
            ("earmark, N = 2", lambda: self.run_earmark(f"{memory}MiB", partitions=2)),
            ("Arrow C++ decode + encode", self.run_recode))
        self.report("J8", f"repartition into 64 files at {memory} MiB", "against N = 2", median_seconds(many), "s",
                    "Earmark, N = 2", median_seconds(few))
        self.report("J8", f"repartition into 64 files at {memory} MiB", "against decode + encode",
                    median_seconds(many), "s",
                    f"Arrow C++ {self.version_of('pyarrow')}, 2 processes", median_seconds(recode))

    @staticmethod
    def version_of(package):
        import importlib.metadata

        return importlib.metadata.version(package)


def median_seconds(runs):
    return statistics.median(run.seconds for run in runs)


def peak(runs):
    return max(run.peak_bytes for run in runs) / MIB


def print_table(rows):
    columns = ["row", "what", "case", "value", "unit", "peer", "peer_value", "ratio_to_peer"]
    table = [columns] + [[str(row.get(name, "")) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measures `earmark repartition` beside DuckDB and Arrow C++.")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line instead of a table")
    parser.add_argument("--scale", type=float, default=5, help="TPC-H scale factor of lineitem (default 5)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each; the median counts (default 3)")
    parser.add_argument("--limits", default="1200,480,240", help="memory limits in MiB (default 1200,480,240)")
    parser.add_argument("--rows", default="J1,J7,J8", help="which rows (default J1,J7,J8)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each system (default 2)")
    parser.add_argument("--files", type=int, default=8, help="files that lineitem is made of (default 8)")
    parser.add_argument("--folder", default=os.path.join(ROOT, ".data"), help="where data and outputs are kept")
    parser.add_argument("--earmark", default=os.environ.get("EARMARK_BIN", os.path.join(ROOT, "build/bin/earmark")),
                        help="the command (default: $EARMARK_BIN, else build/bin/earmark)")
    parser.add_argument("--data-only", action="store_true", help="make the data and stop")
    return parser.parse_args()


def main():
    if len(sys.argv) > 1 and sys.argv[1] in WORKERS:
        WORKERS[sys.argv[1]](*sys.argv[2:])
        return
    options = parse_arguments()
    os.makedirs(options.folder, exist_ok=True)
    bench = Bench(options)
    if options.data_only:
        print(bench.data)
        return
    for row in options.rows.split(","):
        note(row)
        {"J1": bench.j1, "J7": bench.j7, "J8": bench.j8}[row.strip().upper()]()
    shutil.rmtree(bench.scratch, ignore_errors=True)
    if not options.json:
        print_table(bench.rows)


if __name__ == "__main__":
    main()
