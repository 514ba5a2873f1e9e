#!/usr/bin/env bash
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the built release and builds and runs tests/consumer against it, as a user's project would be. Expects
# `./dev build`; what it makes goes to build/consumer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$PWD/build/consumer
rm -rf "$work"
mkdir -p "$work"

./dev install "$work/prefix" 2>"$work/install.log" || { cat "$work/install.log"; exit 1; }
# Away from the tree, so that nothing of it is found by chance.
cp -r tests/consumer "$work/source"
cp examples/two_buffers.cpp examples/waiting.cpp "$work/source"
cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/build"

"$work/build/reserve"
"$work/build/two_buffers"
"$work/build/waiting"
"$work/build/conformance" --gtest_brief=1
.venv/bin/python -c "import pyarrow as pa, pyarrow.parquet as pq, sys
pq.write_table(pa.table({'key': range(1000)}), sys.argv[1])" "$work/input.parquet"
"$work/build/repartition" "$work/input.parquet" "$work/output" key
.venv/bin/python ci/check_partitioned.py "$work/input.parquet" "$work/output" --by key --partitions 4

"$work/prefix/bin/earmark" --version
echo "check_consumer: the installed package builds and runs the consumer project"
