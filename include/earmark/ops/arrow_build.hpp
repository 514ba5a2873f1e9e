// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which Arrow the jobs run with, to be told to people: what reads and writes Parquet decides what can be read.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "earmark/ops/repartition.hpp"

namespace earmark {

// Returns: the version of the Arrow library that is loaded, e.g. "26.0.1".
[[nodiscard]] std::string arrow_version();

// Returns: the codecs that this Arrow can read and write; `None` is not named.
[[nodiscard]] std::vector<Compression::Codec> available_codecs();

}  // namespace earmark
