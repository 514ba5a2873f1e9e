// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The holes of a carved block by size, after "TLSF: a New Dynamic Memory Allocator for Real-Time Systems" (Masmano,
// Ripoll, Crespo, Real; ECRTS 2004): lists of holes of like length, one row of lists per power of two, and bitmaps of
// the lists that are not empty, so that a hole that surely fits is found in a few instructions. Also keeps a list of
// seams: neighbouring holes that were left apart because different streams freed them.
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

// Holes that follow one another: whoever waits for all their streams may have them as one.
struct HoleRun {
  Extent* first{nullptr};
  std::uint64_t length{0};
};

class HoleIndex {
 public:
  // For holes of up to `longest` granules. Throws: std::bad_alloc.
  HoleIndex(std::uint64_t longest, std::pmr::memory_resource& metadata)
      : columns_in_use_(class_of(longest).row + 1, 0, &metadata), heads_(columns_in_use_.size() * columns, &metadata) {
    for (HoleLink& head : heads_) { head.before = head.after = &head; }
  }

  // Requires: neither has holes, and their memory comes from the same resource.
  void swap(HoleIndex& other) noexcept {
    columns_in_use_.swap(other.columns_in_use_);
    heads_.swap(other.heads_);
  }

  void insert(Extent& hole) noexcept {
    hole.set_hole(true);
    put(hole, class_of(hole.length()));
  }
  // Makes it a piece that is no hole, and in no list.
  void remove(Extent& hole) noexcept {
    take_out(hole, class_of(hole.length()));
    hole.set_hole(false);
    drop_seam(hole);
    if (hole.previous != nullptr) { drop_seam(*hole.previous); }
  }
  void set_length(Extent& hole, std::uint64_t length) noexcept {
    Class const before = class_of(hole.length());
    Class const after = class_of(length);
    hole.set_length(length);
    if (before == after) { return; }  // most often: a little of a long hole
    take_out(hole, before);
    put(hole, after);
  }

  // Returns: a hole of at least `length`, one that is `wanted` if there is one among the first few that fit; or null
  // if none is in the lists whose every hole fits, nor among the first of the list in which some may.
  //
  // First those of just this length, for programs that ask for the same again and again; then the longer lists, since
  // whether one of its own list fits cannot be foretold; and that one last.
  template <class Wanted>
  [[nodiscard]] Extent* find(std::uint64_t length, Wanted const& wanted) const noexcept {
    Class const own = class_of(length);
    if (own.row >= columns_in_use_.size()) { return nullptr; }
    // One branch, and one that goes the same way again and again: whether there is a hole of its own list at all cannot
    // be foretold.
    HoleLink* const either[] = {first(own), &nothing_};
    Extent& equal = extent_of(*either[std::size_t{either[0] == end(own)}]);
    if (equal.length() == length && wanted(equal)) { return &equal; }
    int looks = looks_in_longer_lists;
    Extent* second_best = nullptr;
    for (Class at = own; looks > 0 && advance(at);) {
      for (HoleLink* link = first(at); link != end(at) && looks > 0; link = link->after, --looks) {
        Extent& hole = extent_of(*link);
        if (wanted(hole)) [[likely]] { return &hole; }
        if (second_best == nullptr) { second_best = &hole; }
      }
    }
    looks = looks_in_own_list;
    for (HoleLink* link = first(own); link != end(own) && looks > 0; link = link->after, --looks) {
      Extent& hole = extent_of(*link);
      if (hole.length() < length) { continue; }
      if (wanted(hole)) { return &hole; }
      if (second_best == nullptr) { second_best = &hole; }
    }
    return second_best;
  }
  // As `find`, but looks through the whole list in which some may fit. Returns: null only if no hole fits.
  [[nodiscard]] Extent* find_any(std::uint64_t length) const noexcept {
    Class at = class_of(length);
    if (at.row >= columns_in_use_.size()) { return nullptr; }
    for (HoleLink* link = first(at); link != end(at); link = link->after) {
      if (extent_of(*link).length() >= length) { return &extent_of(*link); }
    }
    return advance(at) ? &extent_of(*first(at)) : nullptr;
  }

  [[nodiscard]] std::uint64_t longest() const noexcept {
    if (rows_in_use_ == 0) { return 0; }
    auto const row = static_cast<unsigned>(63 - std::countl_zero(rows_in_use_));
    auto const column = static_cast<unsigned>(31 - std::countl_zero(columns_in_use_[row]));
    std::uint64_t longest = 0;
    Class const at{row, column};
    for (HoleLink* link = first(at); link != end(at); link = link->after) {
      longest = std::max(longest, extent_of(*link).length());
    }
    return longest;
  }

  // To be called when an extent or its successor became a hole or was replaced.
  void refresh_seam(Extent& extent) noexcept {
    bool const seam = extent.is_hole() && extent.next != nullptr && extent.next->is_hole();
    if (!seam) {
      drop_seam(extent);
    } else if (!extent.has_seam()) {
      extent.set_seam(true);
      extent.seam_previous = nullptr;
      extent.chain = seams_;
      if (seams_ != nullptr) { seams_->seam_previous = &extent; }
      seams_ = &extent;
    }
  }
  // Calls `visit(HoleRun)` for each run of two holes or more.
  template <class Visit>
  void for_each_run(Visit const& visit) const {
    for (Extent* seam = seams_; seam != nullptr; seam = seam->chain) {
      if (seam->previous != nullptr && seam->previous->has_seam()) { continue; }  // not the first of its run
      visit(run_from(*seam));
    }
  }
  [[nodiscard]] static HoleRun run_from(Extent& first) noexcept {
    HoleRun run{&first, 0};
    for (Extent* hole = &first; hole != nullptr && hole->is_hole(); hole = hole->next) { run.length += hole->length(); }
    return run;
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return heads_.size() * sizeof(HoleLink) + columns_in_use_.size() * sizeof(std::uint32_t);
  }

 private:
  static constexpr unsigned column_bits = 5;
  static constexpr unsigned columns = 1U << column_bits;
  static constexpr int looks_in_own_list = 4;
  static constexpr int looks_in_longer_lists = 8;

  // The list that a hole is in: the row is its power of two, the column the next bits of its length.
  struct Class {
    unsigned row;
    unsigned column;
    bool operator==(Class const&) const = default;
  };
  // Short lengths have a list each, all in row 0. Without a branch: which it is cannot be foretold.
  [[nodiscard]] static Class class_of(std::uint64_t length) noexcept {
    auto const power = static_cast<unsigned>(63 - std::countl_zero(length | (columns / 2)));
    unsigned const row = power - (column_bits - 1);
    unsigned const shift = row - static_cast<unsigned>(row != 0);
    return {row, static_cast<unsigned>(length >> shift) & (columns - 1)};
  }
  [[nodiscard]] HoleLink& head(Class at) noexcept { return heads_[at.row * columns + at.column]; }
  [[nodiscard]] HoleLink* first(Class at) const noexcept { return heads_[at.row * columns + at.column].after; }
  [[nodiscard]] HoleLink const* end(Class at) const noexcept { return &heads_[at.row * columns + at.column]; }
  [[nodiscard]] static Extent& extent_of(HoleLink& link) noexcept { return static_cast<Extent&>(link); }

  // Moves on to the next list that is not empty. Returns: whether there is one.
  [[nodiscard]] bool advance(Class& at) const noexcept {
    std::uint32_t const longer = columns_in_use_[at.row] & ~((2U << at.column) - 1);
    if (longer != 0) {
      at.column = static_cast<unsigned>(std::countr_zero(longer));
      return true;
    }
    std::uint64_t const rows = rows_in_use_ & ~((std::uint64_t{2} << at.row) - 1);
    if (rows == 0) { return false; }
    at.row = static_cast<unsigned>(std::countr_zero(rows));
    at.column = static_cast<unsigned>(std::countr_zero(columns_in_use_[at.row]));
    return true;
  }

  void put(Extent& hole, Class at) noexcept {
    HoleLink& head = this->head(at);
    hole.before = &head;
    hole.after = head.after;
    head.after->before = &hole;
    head.after = &hole;
    columns_in_use_[at.row] |= 1U << at.column;
    rows_in_use_ |= std::uint64_t{1} << at.row;
  }
  void take_out(Extent& hole, Class at) noexcept {
    hole.before->after = hole.after;
    hole.after->before = hole.before;
    bool const list_empty = hole.before == hole.after && hole.before == &head(at);
    std::uint32_t const row = columns_in_use_[at.row] & ~(std::uint32_t{list_empty} << at.column);
    columns_in_use_[at.row] = row;
    rows_in_use_ &= ~(std::uint64_t{row == 0} << at.row);
  }
  void drop_seam(Extent& extent) noexcept {
    if (!extent.has_seam()) { return; }
    extent.set_seam(false);
    if (extent.chain != nullptr) { extent.chain->seam_previous = extent.seam_previous; }
    (extent.seam_previous != nullptr ? extent.seam_previous->chain : seams_) = extent.chain;
  }

  std::uint64_t rows_in_use_{0};
  std::pmr::vector<std::uint32_t> columns_in_use_;  // by row
  std::pmr::vector<HoleLink> heads_;
  Extent* seams_{nullptr};
  mutable Extent nothing_{};  // of no length
};

}  // namespace earmark::detail
