// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What stands at the end of each `--help`. Thread safety: constants.
#pragma once

namespace earmark::cli {

inline constexpr auto main_help_end = R"(Examples:
  earmark repartition in/*.parquet --by customer --partitions 64 --output out
  earmark repartition in/ --by customer --partitions 64 --output out --memory 512MiB
  earmark info

'earmark COMMAND --help' tells all about a command.)";

inline constexpr auto repartition_help_end =
    R"(SIZE: 512MiB, 1.5GiB, 2g (binary), 1GB (decimal) or plain bytes. PCT%: of the memory of the
machine, or of its cgroup where that has a lower limit; auto: 80 % of what both leave.

Each option can come from the environment too, the line wins: EARMARK_MEMORY for --memory,
EARMARK_ROW_GROUP_BYTES for --row-group-bytes, EARMARK_OVERWRITE=1 for --overwrite.

Examples:
  earmark repartition events/ --by user_id --partitions 64 --output out --memory 512MiB
  earmark repartition 'in/*.parquet' --by 'country,"city, district"' --partitions 16 \
      --output out --memory 25% --threads 4 --compression zstd:3 --overwrite
  earmark repartition events/ --by user_id --columns user_id,time,amount --partitions 8 \
      --output out --verify
  earmark repartition a.parquet b.parquet --by id --partitions 8 --output out \
      --memory 200MiB --json --progress never

Exit codes: 0 done, 1 a defect of Earmark, 2 usage or refused output, 3 bad input, 4 not enough
memory, 5 file system, 130 interrupted, 143 terminated.)";

inline constexpr auto info_help_end = R"(Examples:
  earmark info
  earmark info --memory 50% --output /data/results
  EARMARK_THREADS=4 earmark info --json)";

}  // namespace earmark::cli
