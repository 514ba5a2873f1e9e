# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
"""`--memory` bounds the peak resident size of the process, or the job refuses at once and says what would do."""
import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earmark_command import earmark, earmark_measured, expect_refusal, repartition_arguments, unsanitized
from parquet_data import kept_file, part_names

pytestmark = unsanitized

MIB = 1 << 20
ROWS = 1_200_000


def make_wide(path):
    """Numbers, few and many strings, nulls and lists: about 150 MiB as Arrow."""
    rng = numpy.random.default_rng(7)
    key = rng.integers(0, 1 << 40, ROWS)
    words = pa.array([f"word {i}" for i in range(3000)]).take(pa.array(rng.integers(0, 3000, ROWS)))
    lengths = rng.integers(0, 3, ROWS)
    offsets = pa.array(numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32))
    lists = pa.ListArray.from_arrays(offsets, pa.array(rng.integers(0, 1000, int(lengths.sum()))))
    table = pa.table({"k": key, "a": rng.random(ROWS), "b": pa.array(key % 1000, mask=rng.random(ROWS) < 0.3),
                      "words": words, "text": pa.array(key).cast(pa.string()), "lists": lists})
    pq.write_table(table, path, row_group_size=100_000)


@pytest.fixture
def source():
    return kept_file("wide", make_wide)


def arguments_for(source, output, memory, threads, *more):
    return [*repartition_arguments(source, "k", 16, output, memory), "--threads", threads, "--json", *more]


def stated_least(source, tmp_path, threads):
    outcome = earmark(*arguments_for(source, tmp_path / "out", "1MiB", threads))
    assert outcome.code == 4, outcome
    return outcome.error["least_bytes"]


def check_bounded(source, tmp_path, limit, threads):
    outcome = earmark_measured(tmp_path, *arguments_for(source, tmp_path / "out", limit, threads))
    assert outcome.code == 0, outcome
    summary = outcome.json
    assert summary["limit_bytes"] == limit and summary["rows"] == ROWS
    assert outcome.peak_bytes <= limit, f"{outcome.peak_bytes / MIB:.1f} of {limit / MIB:.1f} MiB"
    assert summary["peak_resident_bytes"] <= limit
    assert abs(summary["peak_resident_bytes"] - outcome.peak_bytes) < 4 * MIB, (summary, outcome.peak_bytes)
    assert sum(pq.read_metadata(tmp_path / "out" / name).num_rows for name in part_names(16)) == ROWS


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("limit", [150, 200, 400, 1000])
def test_the_peak_resident_size_stays_below_the_limit(source, tmp_path, limit, threads):
    check_bounded(source, tmp_path, limit * MIB, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_too_little_is_refused_with_the_least_that_works(source, tmp_path, threads):
    error = expect_refusal("memory", [*repartition_arguments(source, "k", 16, tmp_path / "out", "1MiB"), "--threads",
                                      threads], tmp_path)
    assert error["limit_bytes"] == MIB and error["least_bytes"] > MIB
    check_bounded(source, tmp_path, error["least_bytes"], threads)


def test_the_refusal_can_be_pasted(source, tmp_path):
    outcome = earmark(*repartition_arguments(source, "k", 16, tmp_path / "out", "1MiB"))
    assert outcome.code == 4
    pasted = outcome.stderr.split("--memory ")[-1].split()[0]
    assert earmark(*repartition_arguments(source, "k", 16, tmp_path / "out", pasted)).code == 0


@pytest.mark.parametrize("memory", ["1", "1000", "1MiB", "10MiB", "30MiB"])
def test_any_limit_that_is_too_small_is_refused_and_changes_nothing(source, tmp_path, memory):
    expect_refusal("memory", repartition_arguments(source, "k", 16, tmp_path / "out", memory), tmp_path)


def test_a_refusal_does_not_depend_on_the_limit_that_was_given(source, tmp_path):
    least = {earmark(*arguments_for(source, tmp_path / "out", memory, 2)).error["least_bytes"] // (2 * MIB)
             for memory in ("1MiB", "5MiB", "25MiB")}
    assert max(least) - min(least) <= 1, least


def test_what_works_works_with_more(source, tmp_path):
    least = stated_least(source, tmp_path, 2)
    for number, limit in enumerate([least, least + MIB, least + 7 * MIB, 2 * least, 5 * least, 64 * least]):
        outcome = earmark(*arguments_for(source, tmp_path / str(number), limit, 2))
        assert outcome.code == 0, (limit, outcome)


def test_just_below_the_least_is_refused_or_works_but_never_breaks(source, tmp_path):
    least = stated_least(source, tmp_path, 2)
    for number, limit in enumerate([least - 1, least - MIB, least - 4 * MIB, least // 2]):
        outcome = earmark_measured(tmp_path, *arguments_for(source, tmp_path / str(number), limit, 2))
        assert outcome.code in (0, 4), (limit, outcome)


def test_the_stated_least_is_at_most_a_third_above_the_true_one(source, tmp_path):
    """The true one is found by bisection with the refusal off; what fails then still fails cleanly."""
    stated = stated_least(source, tmp_path, 2)
    fails, works = MIB, stated
    while works - fails > 2 * MIB:
        middle = (works + fails) // 2
        output = tmp_path / str(middle)
        outcome = earmark(*arguments_for(source, output, middle, 2, "--no-admission-check"))
        assert outcome.code in (0, 4), outcome
        assert outcome.code == 0 or not output.exists()
        fails, works = (fails, middle) if outcome.code == 0 else (middle, works)
    assert stated <= 1.3 * works, f"{stated / MIB:.1f} MiB stated, {works / MIB:.1f} MiB work"


def test_a_larger_input_does_not_ask_for_more(tmp_path):
    """The least depends on the shape of the data, hardly on its amount."""
    needs = []
    for number, rows in enumerate([500_000, 4_000_000]):
        path = tmp_path / f"{number}.parquet"
        values = numpy.arange(rows, dtype=numpy.int64)
        pq.write_table(pa.table({"k": values * 2654435761 % 1000003, "v": values}), path, row_group_size=100_000)
        needs.append(earmark(*arguments_for(path, tmp_path / "out", "1MiB", 2)).error["least_bytes"])
    # One byte a row is kept: the partition's number.
    assert needs[1] - needs[0] <= 2 * 3_500_000 + 8 * MIB, needs


def make_large_pages(path, row_groups):
    """Four columns of texts that are not large themselves, in one page a row group, together 16 MiB a column."""
    rng = numpy.random.default_rng(11)
    rows = 256
    texts = {name: pa.array([rng.bytes(1 << 16) for _ in range(rows)]) for name in "abcd"}
    pq.write_table(pa.table({"k": pa.array(range(rows)), **texts}), path, row_group_size=rows // row_groups, use_dictionary=False,
                   compression="snappy", data_page_size=32 << 20, write_batch_size=rows, write_statistics=False)


@pytest.mark.parametrize("row_groups", [1, 4])
@pytest.mark.parametrize("key", ["k", "a,b,c,d"])
@pytest.mark.parametrize("more", [[], ["--verify"]])
def test_large_pages_of_several_columns_fit_the_least(tmp_path, row_groups, key, more):
    """The chunks of all keys are read at the same time, and a verification reads several columns at once."""
    path = tmp_path / "in.parquet"
    make_large_pages(path, row_groups)
    threads = ["--threads", 4]
    refused = [*repartition_arguments(path, key, 4, tmp_path / "out", "1MiB"), *threads, *more]
    least = expect_refusal("memory", refused, tmp_path)["least_bytes"]
    arguments = [*repartition_arguments(path, key, 4, tmp_path / "out", least), *threads, *more, "--json"]
    outcome = earmark_measured(tmp_path, *arguments)
    assert outcome.code == 0, outcome
    assert outcome.peak_bytes <= least, f"{outcome.peak_bytes / MIB:.1f} of {least / MIB:.1f} MiB"


@pytest.mark.parametrize("partitions", [64, 100])
def test_gzip_and_dictionaries_fit_the_least(source, tmp_path, partitions):
    """Each file's dictionary has a compressor of its own; too many of them are not made."""
    arguments = [*repartition_arguments(source, "k", partitions, tmp_path / "out", "1MiB"), "--compression", "gzip"]
    least = expect_refusal("memory", arguments, tmp_path)["least_bytes"]
    arguments = [*repartition_arguments(source, "k", partitions, tmp_path / "out", least), "--compression", "gzip"]
    outcome = earmark_measured(tmp_path, *arguments, "--json")
    assert outcome.code == 0, outcome
    assert outcome.peak_bytes <= least, f"{outcome.peak_bytes / MIB:.1f} of {least / MIB:.1f} MiB"
    words = pq.read_metadata(tmp_path / "out" / "part-00000.parquet").row_group(0).column(3)
    assert words.path_in_schema == "words" and words.has_dictionary_page == (partitions <= 64)
