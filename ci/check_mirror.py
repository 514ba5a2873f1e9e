#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that names mirror each other: every public header FLOOR/NAME.hpp has a test of its name in tests/FLOOR
(NAME_test.cpp) or is listed in ci/mirror_exceptions.txt with the reason; and that every header, source, test and
benchmark is named in the CMakeLists.txt of its folder, so that none is forgotten by the build."""

import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
problems = []


def read_exceptions():
    exceptions = {}
    for line in (root / "ci/mirror_exceptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            header, _, reason = line.partition(": ")
            if not reason:
                problems.append(f"ci/mirror_exceptions.txt: '{header}' has no reason")
            exceptions[header] = reason
    return exceptions


def check_headers():
    exceptions = read_exceptions()
    headers = sorted((root / "include/earmark").rglob("*.hpp"))
    for header in headers:
        name = header.relative_to(root / "include/earmark")
        has_test = (root / "tests" / name.parent / f"{name.stem}_test.cpp").exists()
        listed = exceptions.pop(name.as_posix(), None)
        if not has_test and listed is None:
            problems.append(f"{name}: no test tests/{name.parent}/{name.stem}_test.cpp")
        if has_test and listed is not None:
            problems.append(f"ci/mirror_exceptions.txt: {name} has a test by now")
    problems.extend(f"ci/mirror_exceptions.txt: {name} does not exist" for name in exceptions)
    return len(headers)


def check_lists():
    files = 0
    for top, suffixes in (("src", (".cpp",)), ("tests", ("_test.cpp", "_test.cu", "_test.py")), ("bench", ("_bench.cpp",))):
        for folder in sorted((root / top).iterdir() if (root / top).exists() else []):
            build = folder / "CMakeLists.txt"
            if not folder.is_dir() or folder.name == "consumer":
                continue
            words = set(re.findall(r"[\w./-]+", build.read_text())) if build.exists() else set()
            for path in sorted(folder.rglob("*")):
                if path.name.endswith(suffixes):
                    files += 1
                    name = path.relative_to(folder).as_posix()
                    if not {name, re.sub(r"_(test|bench)\.\w+$", "", name)} & words:
                        problems.append(f"{top}/{folder.name}/{name} is not in {top}/{folder.name}/CMakeLists.txt")
    for header in sorted((root / "include/earmark").rglob("*.hpp")):
        name = header.relative_to(root / "include/earmark")
        lists = "".join(path.read_text() for path in (root / "src").glob("*/CMakeLists.txt"))
        if name.as_posix() not in lists:
            problems.append(f"{name} is in no HEADERS list of src/*/CMakeLists.txt")
    return files


headers, files = check_headers(), check_lists()
if problems:
    sys.exit("\n".join(problems))
print(f"check_mirror: {headers} headers, {files} sources, tests and benchmarks")
