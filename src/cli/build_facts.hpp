// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program was built from, and what it runs with. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "info.hpp"

namespace earmark::cli {

// Version, compiler, kind of build.
[[nodiscard]] std::vector<Fact> build_facts();
// Libraries with their versions, and the codecs that Arrow's build has.
[[nodiscard]] std::vector<Fact> library_facts();

}  // namespace earmark::cli
