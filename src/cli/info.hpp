// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// `earmark info`: what was built, what the machine has and allows, and what a command would use. A report is a list of
// sections; a new one is one more function in info.cpp and shows up in both forms.
// Thread safety: values; gathering looks at the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arguments.hpp"

namespace earmark::cli {

// A number of bytes, which people see in binary units and programs as it is.
struct Bytes {
  std::int64_t count{0};
};

struct Fact {
  std::string name;  // a key of JSON; people see it with spaces for underscores
  std::variant<std::string, std::int64_t, Bytes, bool> value;
  std::string source{};  // where the value comes from; may be empty
};

struct Section {
  std::string name;
  std::vector<Fact> facts;
};

using Info = std::vector<Section>;

// Never fails for what the machine does not tell: such facts are left out, or say so.
[[nodiscard]] Info gather_info(RunInfo const& wanted);

// Lines, grouped by section, each ended.
[[nodiscard]] std::string info_text(Info const& info);
// One JSON object on one line, ended: {"SECTION": {"NAME": VALUE or {"value": VALUE, "source": TEXT}}}; names of bytes
// end with "_bytes".
[[nodiscard]] std::string info_json(Info const& info);

// Returns: the version of the JSON library, from the one file that includes it.
[[nodiscard]] std::string json_library_version();

}  // namespace earmark::cli
