// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/ops/arrow_build.hpp"

#include <arrow/config.h>
#include <arrow/util/compression.h>

#include <array>
#include <utility>

namespace earmark {

std::string arrow_version() { return ::arrow::GetBuildInfo().version_string; }

std::vector<Compression::Codec> available_codecs() {
  using Arrow = ::arrow::Compression;
  using Codec = Compression::Codec;
  constexpr std::array<std::pair<Codec, Arrow::type>, 5> known{{{Codec::Snappy, Arrow::SNAPPY},
                                                                {Codec::Zstd, Arrow::ZSTD},
                                                                {Codec::Lz4, Arrow::LZ4},
                                                                {Codec::Gzip, Arrow::GZIP},
                                                                {Codec::Brotli, Arrow::BROTLI}}};
  std::vector<Codec> available;
  for (auto const& [codec, arrow_codec] : known) {
    if (::arrow::util::Codec::IsAvailable(arrow_codec)) { available.push_back(codec); }
  }
  return available;
}

}  // namespace earmark
