// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/errors.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>

namespace earmark {
namespace {

// Appends to a bounded buffer; what does not fit is cut.
class TextWriter {
 public:
  TextWriter(char* begin, std::size_t capacity) noexcept : at_(begin), left_(capacity) { *at_ = '\0'; }
  void text(std::string_view text) noexcept {
    advance(std::snprintf(at_, left_, "%.*s", static_cast<int>(text.size()), text.data()));
  }
  void bytes(char const* name, std::int64_t bytes) noexcept {
    advance(std::snprintf(at_, left_, "%s %lld B", name, static_cast<long long>(bytes)));
  }

 private:
  void advance(int wanted) noexcept {
    std::size_t const written = std::min(static_cast<std::size_t>(std::max(wanted, 0)), left_ - 1);
    at_ += written;
    left_ -= written;
  }

  char* at_;
  std::size_t left_;
};

FixedText<639> compose(std::string_view summary, ErrorFields const& fields, std::string_view cause) {
  char buffer[640];
  TextWriter out{buffer, sizeof buffer};
  out.text(fields.tier.view());
  out.text(fields.tier.empty() ? "" : " ");
  out.text(summary);
  if (!cause.empty()) {
    out.text(" (");
    out.text(cause.substr(0, 80));
    out.text(")");
  }
  if (!fields.setting.empty()) {
    out.text("; to change it: ");
    out.text(fields.setting.view());
  }
  for (Holder const& holder : fields.holders) {
    if (holder.granted_bytes == 0) { break; }
    out.text("; held by ");
    out.text(holder.label.empty() ? std::string_view{"(no label)"} : holder.label.view());
    out.bytes(":", holder.granted_bytes);
  }
  out.bytes("; requested", fields.requested);
  out.bytes(", short", fields.shortfall);
  if (fields.largest_hole != 0) { out.bytes(", largest hole", fields.largest_hole); }
  out.bytes(", live", fields.live);
  out.bytes(", committed", fields.committed);
  out.bytes(", limit", fields.limit);
  return FixedText<639>{std::string_view{buffer}};
}

}  // namespace

// The base gets a literal short enough for its string to stay in place.
MemoryError::MemoryError(std::string_view summary, ErrorFields const& fields, std::string_view cause)
    : rmm::out_of_memory("earmark"), fields_(fields), text_(compose(summary, fields, cause)) {}

ReservationAborted::ReservationAborted(ErrorFields const& fields)
    : std::runtime_error("a wait for memory was aborted"), fields_(fields) {}

namespace detail {

void rethrow_from_upstream(ErrorFields fields) {
  fields.shortfall = 0;
  fields.setting.assign("the upstream's capacity");
  try {
    throw;
  }
  catch (std::bad_alloc const& cause) {
    throw UpstreamOutOfMemory(fields, cause.what());
  }
}

}  // namespace detail

}  // namespace earmark
