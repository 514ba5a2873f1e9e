# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""The Python reference against published values of MurmurHash3, and the files that carry its golden values."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import golden_partitions as golden  # noqa: E402


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0x00000000),
        (b"", 1, 0x514E28B7),
        (b"", 0xFFFFFFFF, 0x81F16F39),
        (bytes.fromhex("ffffffff"), 0, 0x76293B50),
        (bytes.fromhex("21436587"), 0, 0xF55B516B),
        (bytes.fromhex("21436587"), 0x5082EDEE, 0x2362F9DE),
        (bytes.fromhex("214365"), 0, 0x7E4A8634),
        (bytes.fromhex("2143"), 0, 0xA0F7B07A),
        (bytes.fromhex("21"), 0, 0x72661CF4),
        (bytes(4), 0, 0x2362F9DE),
        (bytes(3), 0, 0x85F0B427),
        (bytes(2), 0, 0x30F4C306),
        (bytes(1), 0, 0x514E28B7),
        (b"test", 0, 0xBA6BD213),
        (b"test", 0x9747B28C, 0x704B81DC),
        (b"Hello, world!", 0, 0xC0363E43),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"The quick brown fox jumps over the lazy dog", 0, 0x2E4FF723),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_murmur3_gives_published_values(data, seed, expected):
    assert golden.murmur3_x86_32(data, seed) == expected


def test_murmur3_gives_the_verification_code_of_its_author():
    hashes = b"".join(golden.murmur3_x86_32(bytes(range(n)), 256 - n).to_bytes(4, "little") for n in range(256))
    assert golden.murmur3_x86_32(hashes, 0) == 0xB0F57EE3


def test_page_and_include_file_hold_the_golden_values():
    assert golden.stale() == []
