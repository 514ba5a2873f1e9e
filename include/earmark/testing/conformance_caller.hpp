// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How the conformance checks call a resource: in one of its forms, looking at every address and every byte, and with a
// balance that must come back to what it was. See `resource_conformance.hpp`.
// Thread safety: a `Caller` is of one thread at a time; copies are of any.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "earmark/testing/resource_subject.hpp"

namespace earmark::testing::conformance {

enum class Form : std::uint8_t { StreamOrdered, Synchronous };

template <class Subject>
[[nodiscard]] std::vector<Form> forms_of() {
  if constexpr (Subject::forms == Forms::StreamOrderedOnly) { return {Form::StreamOrdered}; }
  if constexpr (Subject::forms == Forms::SynchronousOnly) { return {Form::Synchronous}; }
  return {Form::StreamOrdered, Form::Synchronous};
}

struct Block {
  void* pointer{nullptr};
  std::size_t bytes{0};
  std::size_t alignment{1};
  Form form{Form::Synchronous};
};

template <class Subject>
class Caller {
 public:
  using Resource = typename Subject::Resource;

  explicit Caller(Subject& subject) : resource_(subject.resource()), stream_(subject.stream()) {}

  // Allocates, checks the address, and fills the block with bytes of its own. Throws: what the resource throws.
  [[nodiscard]] Block allocate(std::size_t bytes, std::size_t alignment, Form form) {
    Block const block{call_allocate(bytes, alignment, form), bytes, alignment, form};
    if (bytes == 0) { return block; }
    EXPECT_NE(block.pointer, nullptr) << bytes << " bytes";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.pointer) & (alignment - 1), 0U)
        << bytes << " bytes, aligned to " << alignment;
    if constexpr (Subject::writes == Writes::FromHost) { std::memset(block.pointer, mark(block), bytes); }
    return block;
  }
  // Checks that nobody else wrote there, and frees.
  void free(Block const& block) {
    if constexpr (Subject::writes == Writes::FromHost) {
      auto const* const begin = static_cast<unsigned char const*>(block.pointer);
      for (std::size_t i = 0; i < block.bytes; i += i + 64 < block.bytes ? 64 : 1) {
        if (begin[i] != mark(block)) {
          ADD_FAILURE() << "byte " << i << " of " << block.bytes << " was overwritten";
          break;
        }
      }
    }
    call_deallocate(block);
  }
  void free(std::vector<Block>& blocks) {
    for (Block const& block : blocks) { free(block); }
    blocks.clear();
  }
  [[nodiscard]] Resource& resource() { return resource_; }

 private:
  [[nodiscard]] void* call_allocate(std::size_t bytes, std::size_t alignment, Form form) {
    if constexpr (Subject::forms != Forms::SynchronousOnly) {
      if (form == Form::StreamOrdered) { return resource_.allocate(stream_, bytes, alignment); }
    }
    return resource_.allocate_sync(bytes, alignment);
  }
  void call_deallocate(Block const& block) {
    if constexpr (Subject::forms != Forms::SynchronousOnly) {
      if (block.form == Form::StreamOrdered) {
        return resource_.deallocate(stream_, block.pointer, block.bytes, block.alignment);
      }
    }
    resource_.deallocate_sync(block.pointer, block.bytes, block.alignment);
  }
  [[nodiscard]] static unsigned char mark(Block const& block) {
    return static_cast<unsigned char>((reinterpret_cast<std::uintptr_t>(block.pointer) >> 4) * 31 + block.bytes);
  }

  Resource resource_;
  cuda::stream_ref stream_;
};

// What must be as it was when a check is over.
template <class Subject>
class Balance {
 public:
  explicit Balance(Subject& subject) : subject_(subject), used_(subject.used()), live_(subject.faults.live_bytes()) {}
  void expect_unchanged(char const* when) {
    EXPECT_EQ(subject_.used(), used_) << when;
    if constexpr (Subject::freed_bytes == FreedBytes::GoBack) {
      EXPECT_EQ(subject_.faults.live_bytes(), live_) << when << ", of the upstream";
    }
    EXPECT_EQ(subject_.faults.wrong_deallocations(), 0) << when;
  }

 private:
  Subject& subject_;
  std::int64_t used_;
  std::int64_t live_;
};

}  // namespace earmark::testing::conformance
