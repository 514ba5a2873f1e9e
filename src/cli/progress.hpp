// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The progress of a job on standard error: one line that is redrawn on a terminal, plain lines elsewhere.
// Thread safety: one thread, as the job calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arguments.hpp"
#include "earmark/core/clock.hpp"
#include "earmark/ops/repartition.hpp"

namespace earmark::cli {

enum class Charset { Ascii, Unicode };
enum class Colour { No, Yes };

struct ProgressLook {
  std::size_t width{80};  // columns that may be used
  Charset charset{Charset::Ascii};
  Colour colour{Colour::No};
};

// Returns: one line of at most `look.width` columns, without line ends: bar, per cent, rows, MB/s, resident size of the
// limit, and time left, with parts dropped from the right as the width asks.
[[nodiscard]] std::string progress_line(RepartitionProgress const& progress, double seconds, std::int64_t limit_bytes,
                                        ProgressLook const& look);

// "48 s", "3 min 05 s", "2 h 10 min".
[[nodiscard]] std::string duration_text(double seconds);

class ProgressDisplay {
 public:
  // Borrows the clock. Looks at standard error and the environment (NO_COLOR, TERM, LC_ALL, LC_CTYPE, LANG).
  ProgressDisplay(ProgressStyle style, std::int64_t limit_bytes, Clock const& clock);
  ProgressDisplay(ProgressDisplay const&) = delete;
  ProgressDisplay& operator=(ProgressDisplay const&) = delete;
  ~ProgressDisplay();

  void show(RepartitionProgress const& progress);
  // Wipes the line away, so that the next text starts clean.
  void finish() noexcept;

 private:
  enum class Form { Nothing, Bar, Lines };

  void draw(std::string const& line);
  void print(std::string const& line, double fraction);

  Clock const& clock_;
  Clock::time_point const start_;
  std::int64_t const limit_bytes_;
  Form form_;
  ProgressLook look_;
  bool drawn_{false};
  double next_line_at_{0};  // fraction at which the next plain line is due
};

}  // namespace earmark::cli
