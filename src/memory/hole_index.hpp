// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The holes of a carved block by size, after "TLSF: a New Dynamic Memory Allocator for Real-Time Systems" (Masmano,
// Ripoll, Crespo, Real; ECRTS 2004): lists of holes of like length, one row of lists per power of two, and bitmaps of
// the lists that are not empty, so that a hole that surely fits is found in a few instructions.
// Thread safety: none; the carved block's lock guards it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "memory/extent.hpp"

namespace earmark::detail {

class HoleIndex {
 public:
  // For holes of up to `longest` granules. Throws: std::bad_alloc.
  HoleIndex(std::uint64_t longest, std::pmr::memory_resource& metadata)
      : heads_((list_of(longest) / lists_a_word + 1) * lists_a_word, &metadata) {
    for (HoleLink& head : heads_) { head.before = head.after = &head; }
    nothing_.before = nothing_.after = &nothing_;
  }
  HoleIndex(HoleIndex const&) = delete;
  HoleIndex& operator=(HoleIndex const&) = delete;

  // Requires: neither has holes, and their memory comes from the same resource.
  void swap(HoleIndex& other) noexcept { heads_.swap(other.heads_); }

  void insert(Extent& hole) noexcept { put(hole, list_of(hole.length)); }
  void remove(Extent& hole) noexcept { take_out(hole); }
  // A hole of no length, which may be removed as often as one likes, where there is none to remove.
  [[nodiscard]] Extent& nothing() noexcept { return nothing_; }
  void set_length(Extent& hole, std::uint64_t length) noexcept {
    hole.length = length;
    take_out(hole);  // from the same list, at times: that cannot be foretold
    put(hole, list_of(length));
  }

  // Returns: a hole of at least `length` that is `wanted`; or null if there is none among the first few in the lists
  // whose every hole fits, nor among the first few of the list in which some may. Requires: a hole of that length could
  // be in the index.
  //
  // First those of just this length, for programs that ask for the same again and again; then the longer lists, since
  // whether one of its own list fits cannot be foretold; and that one last.
  template <class Wanted>
  [[nodiscard]] Extent* find(std::uint64_t length, Wanted const& wanted) const noexcept {
    unsigned const own = list_of(length);
    // One branch, and one that goes the same way again and again: whether there is a hole of its own list at all cannot
    // be foretold.
    Extent& equal = extent_of(*choose<HoleLink>(first(own) == end(own), &nothing_, first(own)));
    if (equal.length == length && wanted(equal)) { return &equal; }
    int looks = looks_in_longer_lists;
    for (unsigned at = own; looks > 0 && advance(at);) {
      for (HoleLink* link = first(at); link != end(at) && looks > 0; link = link->after, --looks) {
        if (Extent& hole = extent_of(*link); wanted(hole)) [[likely]] { return &hole; }
      }
    }
    looks = looks_in_own_list;
    for (HoleLink* link = first(own); link != end(own) && looks > 0; link = link->after, --looks) {
      if (Extent& hole = extent_of(*link); hole.length >= length && wanted(hole)) { return &hole; }
    }
    return nullptr;
  }
  // Returns: null only if no hole is as long. Looks through the whole list in which some may be.
  [[nodiscard]] Extent* find_any(std::uint64_t length) const noexcept {
    unsigned at = list_of(length);
    if (at >= heads_.size()) { return nullptr; }
    for (HoleLink* link = first(at); link != end(at); link = link->after) {
      if (extent_of(*link).length >= length) { return &extent_of(*link); }
    }
    return advance(at) ? &extent_of(*first(at)) : nullptr;
  }

  [[nodiscard]] std::uint64_t longest() const noexcept {
    if (words_in_use_ == 0) { return 0; }
    auto const word = static_cast<unsigned>(63 - std::countl_zero(words_in_use_));
    unsigned const at = word * lists_a_word + static_cast<unsigned>(63 - std::countl_zero(lists_in_use_[word]));
    std::uint64_t longest = 0;
    for (HoleLink* link = first(at); link != end(at); link = link->after) {
      longest = std::max(longest, extent_of(*link).length);
    }
    return longest;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return heads_.size() * sizeof(HoleLink); }

 private:
  static constexpr unsigned column_bits = 5;
  static constexpr unsigned columns = 1U << column_bits;
  static constexpr unsigned lists_a_word = 64;
  static constexpr std::size_t most_words = 64 * columns / lists_a_word;
  static constexpr int looks_in_own_list = 4;
  static constexpr int looks_in_longer_lists = 8;

  // The list that a hole of this length is in. Its row is the length's power of two, its column the next bits; lengths
  // below two rows have a list each. Without a branch: which it is cannot be foretold.
  [[nodiscard]] static unsigned list_of(std::uint64_t length) noexcept {
    auto const row = static_cast<unsigned>(63 - std::countl_zero(length | columns)) - column_bits;
    return row * columns + static_cast<unsigned>(length >> row);
  }
  [[nodiscard]] HoleLink* first(unsigned at) const noexcept { return heads_[at].after; }
  [[nodiscard]] HoleLink const* end(unsigned at) const noexcept { return &heads_[at]; }
  [[nodiscard]] static Extent& extent_of(HoleLink& link) noexcept { return static_cast<Extent&>(link); }

  // Moves on to the next list that is not empty. Returns: whether there is one.
  [[nodiscard]] bool advance(unsigned& at) const noexcept {
    unsigned word = at / lists_a_word;
    std::uint64_t longer = lists_in_use_[word] & (~std::uint64_t{1} << at % lists_a_word);
    if (longer == 0) {
      std::uint64_t const words = words_in_use_ & (~std::uint64_t{1} << word);
      if (words == 0) { return false; }
      word = static_cast<unsigned>(std::countr_zero(words));
      longer = lists_in_use_[word];
    }
    at = word * lists_a_word + static_cast<unsigned>(std::countr_zero(longer));
    return true;
  }

  void put(Extent& hole, unsigned list) noexcept {
    HoleLink& head = heads_[list];
    hole.list = static_cast<std::uint16_t>(list);
    hole.before = &head;
    hole.after = head.after;
    head.after->before = &hole;
    head.after = &hole;
    std::uint64_t& word = lists_in_use_[list / lists_a_word];
    if (word == 0) [[unlikely]] { words_in_use_ |= std::uint64_t{1} << list / lists_a_word; }
    word |= std::uint64_t{1} << list % lists_a_word;
  }
  // Without a branch: whether it is the last of its list cannot be foretold.
  void take_out(Extent& hole) noexcept {
    hole.before->after = hole.after;
    hole.after->before = hole.before;
    bool const list_empty = hole.before == hole.after;  // both the head
    std::uint64_t& word = lists_in_use_[hole.list / lists_a_word];
    word &= ~(std::uint64_t{list_empty} << hole.list % lists_a_word);
    if (word == 0) [[unlikely]] { words_in_use_ &= ~(std::uint64_t{1} << hole.list / lists_a_word); }
  }

  std::uint64_t words_in_use_{0};
  std::array<std::uint64_t, most_words> lists_in_use_{};
  std::pmr::vector<HoleLink> heads_;
  mutable Extent nothing_{};  // in list 0, which is that of no length
};

}  // namespace earmark::detail
