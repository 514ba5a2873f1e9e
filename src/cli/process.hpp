// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the command arranges in its own process before any thread starts. Thread safety: for the main thread only.
#pragma once

#include <string_view>

namespace earmark::cli {

// Makes freed memory go back to the system (one malloc arena, big blocks mapped, Arrow on malloc), opens /dev/null on
// closed standard descriptors so that no data file gets their numbers, ignores SIGPIPE, and raises the soft limit of
// open files to the hard one. Call it first. Never fails: what the system refuses stays as it was.
void prepare_process() noexcept;

enum class Written { All, ReaderGone, Failed };

// Writes all of `text` to a descriptor, whatever its size. Returns: what became of it; never throws.
[[nodiscard]] Written write_all(int descriptor, std::string_view text) noexcept;

}  // namespace earmark::cli
