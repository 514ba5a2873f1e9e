// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the command arranges in its own process before any thread starts. Thread safety: for the main thread only.
#pragma once

#include <string_view>

namespace earmark::cli {

// Makes freed memory go back to the system (one malloc arena, big blocks mapped, Arrow on malloc), opens /dev/null on
// closed standard descriptors so that no data file gets their numbers, ignores SIGPIPE and SIGXFSZ (writing then fails
// with EPIPE and EFBIG), and raises the soft limit of open files to the hard one. Call it first. Never fails: what the
// system refuses stays as it was.
void prepare_process() noexcept;

// Ends the process, without the exit handlers of libraries: where memory was too short for one to begin, its handler
// crashes. A sanitizer's build runs them, since its report is one. Everything must be written.
[[noreturn]] void end_process(int exit_code) noexcept;

enum class Written { All, ReaderGone, Failed };

// Writes all of `text` to a descriptor, whatever its size. Returns: what became of it; never throws.
[[nodiscard]] Written write_all(int descriptor, std::string_view text) noexcept;

}  // namespace earmark::cli
