# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the command as a user would, and looks at what it left."""
import json
import os
import signal
import subprocess
import sys

import pytest

SANITIZED = os.environ.get("EARMARK_SANITIZE", "") != ""
# Sanitizers multiply both; what needs real numbers is marked `unsanitized`.
DEFAULT_MEMORY = "4GiB" if SANITIZED else "512MiB"
TIMEOUT = 240 if SANITIZED else 60

unsanitized = pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory and time drown what is measured")

EXIT_CODES = {"internal": 1, "usage": 2, "output": 2, "input": 3, "memory": 4, "disk": 5, "interrupted": 130}


def program():
    """EARMARK_BIN is the program or the folder that holds it."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    place = os.environ.get("EARMARK_BIN", os.path.join(root, "build", "bin"))
    return os.path.join(place, "earmark") if os.path.isdir(place) else place


# A process inherits the peak of the one that starts it, and a test that holds data is large: start from a small one.
SMALL_PARENT = """
import json, os, subprocess, sys
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump({"peak_bytes": usage.ru_maxrss * 1024, "code": os.waitstatus_to_exitcode(status)}, file)
"""


class Outcome:
    def __init__(self, code, stdout, stderr, peak_bytes=None):
        self.code, self.stdout, self.stderr, self.peak_bytes = code, stdout, stderr, peak_bytes

    @property
    def json(self):
        lines = self.stdout.splitlines()
        assert len(lines) == 1, self
        return json.loads(lines[0])

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def earmark(*arguments, timeout=None, **options):
    """Runs `earmark ARGUMENTS`."""
    result = subprocess.run([program(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, timeout=timeout or TIMEOUT, errors="replace", text=True,
                            **options)
    outcome = Outcome(result.returncode, result.stdout, result.stderr)
    # A crash, or a report of a sanitizer, is never what a test wants.
    assert outcome.code >= 0, outcome
    assert "Sanitizer" not in outcome.stderr, outcome
    return outcome


def earmark_measured(tmp_path, *arguments, timeout=None):
    """As `earmark`, with the peak resident size of its process."""
    report = os.path.join(tmp_path, "peak.json")
    result = subprocess.run([sys.executable, "-S", "-E", "-c", SMALL_PARENT, report, program(), *map(str, arguments)],
                            capture_output=True, timeout=timeout or TIMEOUT, errors="replace", text=True)
    with open(report) as file:
        seen = json.load(file)
    return Outcome(seen["code"], result.stdout, result.stderr, seen["peak_bytes"])


def repartition_arguments(inputs, by, partitions, output, memory=DEFAULT_MEMORY, *more):
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    return ["repartition", *inputs, "--by", by, "--partitions", partitions, "--output", output, "--memory", memory,
            *more]


def repartition(inputs, by, partitions, output, *more, memory=DEFAULT_MEMORY):
    """Runs the job with `--json` and expects success. Returns: the summary."""
    outcome = earmark(*repartition_arguments(inputs, by, partitions, output, memory, "--json", *more))
    assert outcome.code == 0, outcome
    return outcome.json


def snapshot(folder):
    """All names below a folder with the bytes of each file."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(place, name), folder)] = None
        for name in files:
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder)] = content_of(path)
    return found


def content_of(path):
    if not os.path.isfile(path):
        return os.readlink(path) if os.path.islink(path) else None
    with open(path, "rb") as file:
        return file.read()


def expect_refusal(kind, arguments, untouched, *words, environment=None):
    """Runs the command twice (text, JSON), and expects a failure of that kind which changes nothing below `untouched`.

    `words` must be in the message. Returns: the error object.
    """
    before = snapshot(untouched)
    outcome = earmark(*arguments, env=environment)
    assert outcome.code == EXIT_CODES[kind], outcome
    assert snapshot(untouched) == before, "something was changed or left behind"
    assert outcome.stdout == "", outcome
    first = outcome.stderr.splitlines()[0] if kind != "usage" else outcome.stderr
    assert "earmark: error: " in first, outcome
    for word in words:
        assert str(word) in outcome.stderr, (word, outcome)

    outcome = earmark(*arguments, "--json", env=environment)
    assert outcome.code == EXIT_CODES[kind], outcome
    assert snapshot(untouched) == before, "something was changed or left behind"
    assert outcome.error["kind"] == kind, outcome
    for word in words:
        assert str(word) in outcome.error["message"], (word, outcome)
    return outcome.error


class Running:
    """The command while it runs, to send it signals. SIGINT is as a terminal would have it."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([program(), *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace")

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=TIMEOUT):
        stdout, stderr = self.process.communicate(timeout=timeout)
        return Outcome(self.process.returncode, stdout, stderr)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
