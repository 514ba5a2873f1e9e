// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "build_facts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <rmm/version_config.hpp>

#include "earmark/ops/arrow_build.hpp"
#include "option_values.hpp"

namespace earmark::cli {
namespace {

[[nodiscard]] std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

[[nodiscard]] std::string build_type() {
#ifdef NDEBUG
  std::string type = "release";
#else
  std::string type = "debug, assertions checked";
#endif
  std::string const sanitizers = EARMARK_SANITIZERS;
  return sanitizers.empty() ? type : type + ", sanitizers: " + sanitizers;
}

[[nodiscard]] std::string codecs() {
  std::string text;
  for (auto const codec : available_codecs()) { text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(codec)); }
  return text;
}

[[nodiscard]] std::string c_library() {
  std::array<char, 64> text{};
  return ::confstr(_CS_GNU_LIBC_VERSION, text.data(), text.size()) > 0 ? std::string{text.data()} : "unknown";
}

[[nodiscard]] std::string fmt_version() {
  return fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
}

}  // namespace

std::vector<Fact> build_facts() {
  return {{"version", EARMARK_VERSION}, {"compiler", compiler()}, {"type", build_type()}, {"codecs", codecs()}};
}

std::vector<Fact> library_facts() {
  return {{"arrow", arrow_version()},
          {"rmm", fmt::format("{}.{:02}.{:02}", RMM_VERSION_MAJOR, RMM_VERSION_MINOR, RMM_VERSION_PATCH)},
          {"c_library", c_library()},
          {"fmt", fmt_version()},
          {"cli11", parser_version()},
          {"nlohmann_json", json_library_version()}};
}

}  // namespace earmark::cli
