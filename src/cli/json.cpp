// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <variant>

#include "info.hpp"
#include "summary.hpp"

namespace earmark::cli {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] std::string one_line_of(Json const& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <class Value>
[[nodiscard]] Json json_of(Value const& value) {
  return value;
}
[[nodiscard]] Json json_of(Bytes const& bytes) { return bytes.count; }

}  // namespace

std::string summary_json(RepartitionResult const& result) {
  Json object;
  object["rows"] = result.rows;
  object["files"] = result.files;
  object["bytes_in"] = result.bytes_in;
  object["bytes_out"] = result.bytes_out;
  object["seconds"] = result.seconds;
  object["limit_bytes"] = result.limit_bytes;
  object["baseline_bytes"] = result.baseline_bytes;
  object["peak_resident_bytes"] = result.peak_resident_bytes;
  object["tiers"]["host"]["peak_bytes"] = result.peak_committed_bytes;
  object["spilled_bytes"] = result.spilled_bytes;
  object["waits"] = result.waits;
  object["wait_seconds"] = result.wait_seconds;
  object["verified"] = result.verified == Verify::Yes;
  return one_line_of(object);
}

std::string failure_json(Failure const& failure) {
  Json error;
  error["kind"] = failure.kind;
  error["message"] = failure.message;
  if (!failure.file.empty()) { error["file"] = failure.file; }
  if (!failure.column.empty()) { error["column"] = failure.column; }
  if (failure.row_group) { error["row_group"] = *failure.row_group; }
  if (failure.limit_bytes) { error["limit_bytes"] = *failure.limit_bytes; }
  if (failure.least_bytes) { error["least_bytes"] = *failure.least_bytes; }
  return one_line_of(Json{{"error", std::move(error)}});
}

std::string info_json(Info const& info) {
  Json object;
  for (auto const& section : info) {
    Json& facts = object[section.name] = Json::object();
    for (auto const& fact : section.facts) {
      auto value = std::visit([](auto const& known) { return json_of(known); }, fact.value);
      auto const name = fact.name + (std::holds_alternative<Bytes>(fact.value) ? "_bytes" : "");
      facts[name] = fact.source.empty() ? std::move(value) : Json{{"value", std::move(value)}, {"source", fact.source}};
    }
  }
  return one_line_of(object);
}

std::string json_library_version() {
  auto const version = Json::meta()["version"];
  return version["string"].get<std::string>();
}

}  // namespace earmark::cli
