// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The end of a run as text for people and as JSON for programs. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "earmark/ops/repartition.hpp"
#include "failure.hpp"

namespace earmark::cli {

// Aligned lines that end with a newline.
[[nodiscard]] std::string summary_text(RepartitionResult const& result, std::string_view output);

// One JSON object on one line, ended. Bytes that are no UTF-8 (names of files may have some) become U+FFFD.
[[nodiscard]] std::string summary_json(RepartitionResult const& result);
[[nodiscard]] std::string failure_json(Failure const& failure);

// "30,000,000".
[[nodiscard]] std::string with_separators(std::int64_t count);

}  // namespace earmark::cli
