# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""Random schemas, sizes, writers' settings and options, each from a seed: every row comes through to its place."""
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import SANITIZED, repartition
from parquet_data import check_result, make_table, write
from types_test import DECIMALS, DICTIONARIES, FLAT_TYPES, NESTED_TYPES

SEEDS = range(12 if SANITIZED else 60)
# Arrow cannot read a nested dictionary back from several row groups.
NESTED = [kind for name, kind in NESTED_TYPES.items() if name != "list of dictionaries"]


def random_type(rng, depth):
    if depth == 0 or rng.random() < 0.7:
        return rng.choice([*FLAT_TYPES, *DECIMALS])
    shape = rng.randrange(3)
    if shape == 0:
        return pa.list_(random_field(rng, "element", random_type(rng, depth - 1)))
    if shape == 1:
        return pa.struct([random_field(rng, f"f{i}", random_type(rng, depth - 1)) for i in range(rng.randint(1, 3))])
    return pa.map_(rng.choice([pa.string(), pa.int32()]), random_type(rng, depth - 1))


def random_field(rng, name, kind):
    """A field of nulls cannot be required."""
    return pa.field(name, kind, nullable=pa.types.is_null(kind) or rng.random() < 0.7)


def random_fields(rng):
    keys = [random_field(rng, f"k{i}", rng.choice([*FLAT_TYPES, *rng.sample(DECIMALS, 3), *DICTIONARIES]))
            for i in range(rng.randint(1, 4))]
    others = [random_field(rng, f"v{i}", rng.choice([random_type(rng, 3), rng.choice(NESTED)]))
              for i in range(rng.randint(0, 5))]
    return keys + others


def random_settings(rng):
    return dict(compression=rng.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
                data_page_version=rng.choice(["1.0", "2.0"]), use_dictionary=rng.random() < 0.6,
                data_page_size=rng.choice([64, 1000, 1 << 20]), write_batch_size=rng.choice([1, 10, 1024]),
                write_statistics=rng.random() < 0.7, write_page_index=rng.random() < 0.5,
                row_group_size=rng.choice([13, 100, 1000, 100_000]),
                dictionary_pagesize_limit=rng.choice([100, 1 << 20]), store_decimal_as_integer=rng.random() < 0.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_table_comes_through(tmp_path, seed):
    rng = random.Random(seed)
    table = make_table(random_fields(rng), rng.choice([0, 1, 10, 500, 1500]), seed)
    settings = random_settings(rng)
    cuts = sorted(rng.randrange(table.num_rows + 1) for _ in range(rng.randrange(3)))
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, table.num_rows])):
        write(table.slice(start, end - start), tmp_path / f"{number}.parquet", **settings)
    flat = [name for name in table.schema.names if name.startswith(("k", "row"))]
    keys = rng.sample(flat, rng.randint(1, min(3, len(flat))))
    count = rng.choice([1, 2, 7, 300])
    more = rng.choice([[], ["--threads", "1"], ["--threads", "3"], ["--row-group-bytes", "1KiB"],
                       ["--compression", "zstd:1"]])
    repartition(tmp_path / "?.parquet", ",".join(keys), count, tmp_path / "out", *more)
    check_result(table, tmp_path / "out", keys, count)
    assert pq.read_metadata(tmp_path / "out" / "part-00000.parquet").num_columns > 0
