#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that what the guide shows is code that is built and run: the lines of every ```cpp block of a document follow
each other in a program of examples/, indentation and blank lines aside. `...` alone on a line stands for lines that are
left out."""

import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
DOCUMENTS = ["docs/reservations.md", "docs/spilling.md"]
LEFT_OUT = "..."


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def snippets(path):
    """Yields the number of the first line and the lines of each block."""
    block = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if block is None and line.strip() == "```cpp":
            block, start = [], number + 1
        elif block is not None and line.strip() == "```":
            yield start, block
            block = None
        elif block is not None and line.strip():
            block.append(line.strip())


def parts_of(snippet):
    parts = [[]]
    for line in snippet:
        if line == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return [part for part in parts if part]


def holds(program, snippet):
    start = 0
    for part in parts_of(snippet):
        places = [i for i in range(start, len(program) - len(part) + 1) if program[i:i + len(part)] == part]
        if not places:
            return False
        start = places[0] + len(part)
    return True


programs = [lines_of(path.read_text()) for path in sorted((root / "examples").glob("*.cpp"))]
problems, count = [], 0
for name in DOCUMENTS:
    for number, snippet in snippets(root / name):
        count += 1
        if not any(holds(program, snippet) for program in programs):
            problems.append(f"{name}:{number}: not in a program of examples/: {snippet[0]}")
if problems:
    sys.exit("\n".join(problems))
print(f"check_snippets: {count} snippets in {len(DOCUMENTS)} document(s)")
