#!/usr/bin/env python3
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Checks words that must be there (the licence lines of every source and script) and words that must not: places of one
machine, hosts of package registries, names that say nothing."""

import re
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
me = Path(__file__).relative_to(root).as_posix() if Path(__file__).is_absolute() else "ci/check_words.py"

FORBIDDEN = [
    (re.compile(r"(?<![\w.-])/(work|home|root|opt)/"), "a path of one machine"),
    (re.compile(r"\b(index-url|extra-index|pythonhosted|pypi\.org|deb\.debian\.org|PIP_(INDEX|FIND)\w*)\b"),
     "where a registry is"),
    (re.compile(r"\bissues?\s+#?\d+\b|(?<!\w)#\d+\b(?!\w)(?=\s*(?:\)|$))", re.I), "a number of a tracker"),
    (re.compile(r"\b(FIXME|XXX|HACK)\b"), "a marker that says neither what nor why"),
]
BAD_NAMES = re.compile(r"(^|/|_)(utils?|misc|common|helpers?)(_|\.|/|$)")
LICENSED = re.compile(r"\.(hpp|cpp|cu|cuh|py|sh|cmake|in)$|(^|/)CMakeLists\.txt$|^dev$|^\.ci/run$")
NOT_TEXT = re.compile(r"\.(parquet|arrow|png|bin)$")

listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True,
                         text=True)
names = sorted(name for name in set(listing.stdout.splitlines()) if (root / name).is_file())
problems = []
for name in names:
    if BAD_NAMES.search(name):
        problems.append(f"{name}: a file name that says nothing")
    if NOT_TEXT.search(name) or name in (me, "LICENSE"):
        continue
    lines = (root / name).read_text().splitlines()
    if LICENSED.search(name):
        head = "\n".join(lines[:4])
        if "Copyright (c) 2026 The Earmark authors" not in head or "SPDX-License-Identifier: Apache-2.0" not in head:
            problems.append(f"{name}: no licence lines")
    for number, line in enumerate(lines, 1):
        for pattern, what in FORBIDDEN:
            if pattern.search(line):
                problems.append(f"{name}:{number}: {what}: {line.strip()[:100]}")
if problems:
    sys.exit("\n".join(problems))
print(f"check_words: {len(names)} files")
