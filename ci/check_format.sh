#!/usr/bin/env bash
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks that C++ sources are in the format of .clang-format, with the version that requirements.txt fixes.
# --fix brings them into it instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(--dry-run --Werror)
[[ ${1:-} == --fix ]] && mode=(-i)
mapfile -t sources < <(find include src tests bench -name '*.hpp' -o -name '*.cu' -o -name '*.cpp' 2>/dev/null | sort)
.venv/bin/clang-format "${mode[@]}" "${sources[@]}"
echo "check_format: ${#sources[@]} files"
