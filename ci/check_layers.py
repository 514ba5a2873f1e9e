#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the tower (ARCHITECTURE.md):

1. Includes go down or stay on the floor.
2. Foreign headers appear only in the folders named for them.
3. No feature macros in installed headers: a feature exists if its target exists.
4. No floor below the roof starts a thread, sleeps or reads a clock but through core's Executor and Clock; every mutex
   is an earmark::Mutex.
5. A heavy foreign header is included by one door file (NAME.hpp and NAME.cpp count as one).

Usage: check_layers.py [--self-test] [ROOT]. --self-test plants a violation of each rule and checks that it is found.
"""

import re
import sys
import tempfile
from pathlib import Path

TOWER = ["core", "memory", "tier", "table", "flow", "comm", "ops", "roof"]

# Folder -> floor. A folder beside its floor is a foreign part: it may include the floor, not the other way round.
FLOOR_OF = {
    "core": "core",
    "memory": "memory", "memory_arrow": "memory", "memory_cuda": "memory",
    "tier": "tier", "tier_cuda": "tier",
    "table": "table", "table_arrow": "table", "table_cuda": "table", "table_cudf": "table",
    "flow": "flow",
    "comm": "comm", "comm_mpi": "comm", "comm_ucx": "comm",
    "ops": "ops",
    "cli": "roof", "python": "roof",
}
TESTING = "testing"  # what tests of any floor use; stands on memory, and no floor includes it
TESTING_FLOOR = "memory"

ABOVE_CORE = set(FLOOR_OF) - {"core"} | {TESTING}
# First match decides. Folders that may include it; tests and benchmarks are free in what they include.
FOREIGN = [
    (r"(arrow|parquet)/", {"memory_arrow", "table_arrow", "ops"}),
    (r"(cuda|cub|thrust|nv)/", ABOVE_CORE),
    (r"rmm/", ABOVE_CORE),
    (r"(cuda\w*|driver_types|cooperative_groups|nvtx3/.*)\.h(pp)?$",
     {"memory_cuda", "tier_cuda", "table_cuda", "table_cudf"}),
    (r"cudf/", {"table_cudf"}),
    (r"mpi\.h$", {"comm_mpi"}),
    (r"(ucp|uct|ucs)/", {"comm_ucx"}),
    (r"(liburing|xxhash|lz4\w*|zstd\w*)\.h$", {"tier"}),
    (r"flatbuffers/", {"table"}),
    (r"fmt/", set(FLOOR_OF) | {TESTING}),
    (r"gtest/", {TESTING}),
    (r"(CLI|spdlog|nlohmann)/", {"cli"}),
    (r"(nanobind/|Python\.h$)", {"python"}),
]
# Not judged here: the C++ library, C's and the system's headers.
SYSTEM = re.compile(r"^([a-z_]+|(sys|linux|asm|netinet|arpa|bits)/\w+\.h|cxxabi\.h|[a-z]\w+\.h)$")
# Installed headers of these folders alone may show Arrow to those who include them.
SHOWS_ARROW = {"memory_arrow", "table_arrow"}

# Heavy headers: each group has one door in a folder.
HEAVY = [r"CLI/", r"spdlog/", r"nlohmann/", r"parquet/encoding\.h$", r"parquet/(column_writer|page_index|thrift\w*)\.h$"]

FEATURE_MACRO = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*?\b(\w*(?:HAVE|HAS|WITH|ENABLE|USE)_\w+)")
# A refusal to compile without the CUDA headers is no feature.
ALLOWED_MACROS = {"_CCCL_HAS_CTK"}

CLOCKS_AND_THREADS = [
    (re.compile(r"\bstd::(jthread|async)\b|\bstd::thread\b(?!::)|\bpthread_create\b"), "starts a thread"),
    (re.compile(r"\bsleep_(for|until)\b|\b(u|nano)?sleep\s*\("), "sleeps"),
    (re.compile(r"\b(steady|system|high_resolution|utc|file)_clock::now\b|\bclock_gettime\b|\bgettimeofday\b"
                r"|\btime\(\s*(nullptr|NULL|0)\s*\)"), "reads a clock"),
]
THEIR_IMPLEMENTATIONS = {"src/core/thread_pool.cpp", "include/earmark/core/thread_pool.hpp", "src/core/clock.cpp",
                         "include/earmark/testing/conformance_checks.hpp"}  # the last is made of tests
SLEEP = CLOCKS_AND_THREADS[1][0]
PLAIN_MUTEX = re.compile(r"\bstd::(recursive_|shared_|timed_)?mutex\b")
MUTEX_HOME = "include/earmark/core/thread_annotations.hpp"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def code_lines(text):
    """The lines with comments and string literals blanked, so that prose is not judged; includes are kept."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    for line in text.split("\n"):
        if not INCLUDE.match(line):
            line = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        yield re.sub(r"//.*", "", line)


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.doors = {}
        self.files = 0

    def report(self, path, number, rule, text):
        self.problems.append(f"{path}:{number}: rule {rule}: {text}")

    def run(self):
        for top in ("include/earmark", "src", "tests", "bench"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in (".hpp", ".cpp", ".cu", ".cuh"):
                    self.check_file(path, top)
        for (folder, group), stems in sorted(self.doors.items()):
            if len(stems) > 1:
                self.problems.append(f"src/{folder}: rule 5: {group} has more than one door: {', '.join(sorted(stems))}")
        return self.problems

    def check_file(self, path, top):
        self.files += 1
        name = path.relative_to(self.root).as_posix()
        folder = path.relative_to(self.root / top).parts[0]
        product = top in ("include/earmark", "src")
        if product and folder not in FLOOR_OF and folder != TESTING:
            return self.report(name, 1, 1, f"folder '{folder}' is no floor")
        for number, line in enumerate(code_lines(path.read_text()), 1):
            if found := INCLUDE.match(line):
                self.check_include(name, number, path, folder, top, found[1], found[2])
            if top == "include/earmark":
                self.check_macro(name, number, line)
            self.check_calls(name, number, folder, top, line)

    def check_include(self, name, number, path, folder, top, quote, header):
        product = top in ("include/earmark", "src")
        target = self.target_folder(path, header)
        if target is not None:
            if product and not may_include(folder, target):
                self.report(name, number, 1, f"{folder} includes {header}")
            return
        if quote == '"' and (path.parent / header).exists():
            return
        for pattern, folders in FOREIGN:
            if re.match(pattern, header):
                if product and folder not in folders:
                    self.report(name, number, 2, f"{folder} includes <{header}>")
                if top == "include/earmark" and header.startswith(("arrow/", "parquet/")) and folder not in SHOWS_ARROW:
                    self.report(name, number, 2, f"an installed header of {folder} shows <{header}>")
                break
        else:
            if product and not SYSTEM.match(header):
                self.report(name, number, 2, f"<{header}> is unknown: name its folders in ci/check_layers.py")
        for group in HEAVY:
            if product and re.match(group, header):
                self.doors.setdefault((folder, group), set()).add(path.stem)

    def target_folder(self, path, header):
        """The folder of the tower that an include leads to, or None when it leads out of it or into its own folder."""
        parts = header.split("/")
        if parts[0] == "earmark" and len(parts) > 1:
            return parts[1]
        if len(parts) > 1 and (parts[0] in FLOOR_OF or parts[0] == TESTING) and (self.root / "src" / header).exists():
            return parts[0]
        return None

    def check_macro(self, name, number, line):
        if (found := FEATURE_MACRO.match(line)) and found[1] not in ALLOWED_MACROS:
            self.report(name, number, 3, f"feature macro {found[1]}")

    def check_calls(self, name, number, folder, top, line):
        if top == "tests" and SLEEP.search(line):
            self.report(name, number, 4, "a test sleeps")
        if top not in ("include/earmark", "src") or name in THEIR_IMPLEMENTATIONS:
            return
        if FLOOR_OF.get(folder) != "roof":
            for pattern, what in CLOCKS_AND_THREADS:
                if pattern.search(line):
                    self.report(name, number, 4, what)
        if PLAIN_MUTEX.search(line) and name != MUTEX_HOME:
            self.report(name, number, 4, "a mutex without annotations: use earmark::Mutex")


def may_include(folder, target):
    if target == TESTING or folder == TESTING:
        floor = FLOOR_OF.get(target, "roof")
        return folder == TESTING and (target == TESTING or TOWER.index(floor) <= TOWER.index(TESTING_FLOOR))
    if target not in FLOOR_OF:
        return False
    here, there = TOWER.index(FLOOR_OF[folder]), TOWER.index(FLOOR_OF[target])
    if here == there:
        # A foreign part includes its floor and itself.
        return target == folder or target == FLOOR_OF[folder]
    return there < here


# What each planted file must be told; None: nothing.
PLANTED = [
    ("src/core/a.cpp", '#include "earmark/memory/budget.hpp"\n', "rule 1: core includes"),
    ("src/memory/a.cpp", '#include "earmark/memory_arrow/pool.hpp"\n', "rule 1: memory includes"),
    ("src/ops/a.cpp", '#include "earmark/testing/faults.hpp"\n', "rule 1: ops includes"),
    ("include/earmark/utilities/a.hpp", "\n", "rule 1: folder 'utilities' is no floor"),
    ("src/table/a.cpp", "#include <arrow/api.h>\n", "rule 2: table includes <arrow/api.h>"),
    ("src/core/b.cpp", "#include <rmm/device_buffer.hpp>\n", "rule 2: core includes"),
    ("src/memory/b.cpp", "#include <cuda_runtime_api.h>\n", "rule 2: memory includes"),
    ("include/earmark/ops/a.hpp", "#include <parquet/types.h>\n", "rule 2: an installed header of ops"),
    ("src/ops/b.cpp", "#include <boost/asio.hpp>\n", "rule 2: <boost/asio.hpp> is unknown"),
    ("include/earmark/table/a.hpp", "#ifdef EARMARK_HAVE_CUDA\n#endif\n", "rule 3: feature macro EARMARK_HAVE_CUDA"),
    ("include/earmark/table/b.hpp", "#if defined(HAVE_X)\n#endif\n", "rule 3: feature macro HAVE_X"),
    ("src/memory/c.cpp", "std::thread t{f};\n", "rule 4: starts a thread"),
    ("src/ops/c.cpp", "std::this_thread::sleep_for(1s);\n", "rule 4: sleeps"),
    ("src/table/c.cpp", "auto t = std::chrono::steady_clock::now();\n", "rule 4: reads a clock"),
    ("src/memory/d.cpp", "std::mutex m;\n", "rule 4: a mutex"),
    ("tests/core/a_test.cpp", "std::this_thread::sleep_for(1s);\n", "rule 4: a test sleeps"),
    ("src/cli/a.cpp", "#include <CLI/CLI.hpp>\n", "rule 5: CLI/ has more than one door"),
    ("src/cli/b.cpp", "#include <CLI/App.hpp>\n", None),
    ("src/core/clean.cpp", '// std::thread is not started here\n#include <vector>\n#include <sys/mman.h>\n'
                           '#include "earmark/core/bytes.hpp"\nauto n = std::thread::hardware_concurrency();\n', None),
    ("src/ops/clean.cpp", '#include "earmark/memory_arrow/pool.hpp"\n#include <parquet/file_reader.h>\n'
                          'auto text = "std::mutex";\n', None),
    ("src/cli/clean.cpp", "auto t = std::chrono::steady_clock::now();\n", None),
    ("tests/core/b_test.cpp", "#include <arrow/api.h>\nstd::thread t{f};\n", None),
    ("include/earmark/memory/clean.hpp", "#if !_CCCL_HAS_CTK()\n#error no headers\n#endif\n", None),
]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text, _ in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        problems = Checker(root).run()
    failures = []
    for name, _, expected in PLANTED:
        if expected and not any(expected in problem for problem in problems):
            failures.append(f"{name}: not found: {expected}")
    expected_count = sum(1 for planted in PLANTED if planted[2])
    if len(problems) != expected_count:
        failures.append(f"{len(problems)} problems where {expected_count} were planted:\n  " + "\n  ".join(problems))
    if failures:
        sys.exit("check_layers: self-test failed\n" + "\n".join(failures))
    print(f"check_layers: self-test found all {expected_count} planted violations and nothing else")


def main(arguments):
    if "--self-test" in arguments:
        return self_test()
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    checker = Checker(root)
    if problems := checker.run():
        sys.exit("\n".join(problems))
    print(f"check_layers: {checker.files} files")


main(sys.argv[1:])
