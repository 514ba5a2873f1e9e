// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which parts of a file are in use: extents and the holes between them. The smallest hole that fits is taken, so the
// end of the file is reached last. Giving an extent back needs no memory: what will describe its hole is kept with it.
// Private to tier. Thread safety: none of its own.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace earmark::detail {

class ExtentMap {
 public:
  explicit ExtentMap(std::int64_t capacity) { holes_.insert(0, capacity); }

  // Returns: the offset of `bytes` that are in use now; nothing when no hole is large enough. Throws: std::bad_alloc;
  // then nothing changed. Requires: bytes > 0.
  [[nodiscard]] std::optional<std::int64_t> take(std::int64_t bytes) {
    auto const found = holes_.by_size.lower_bound({bytes, 0});
    if (found == holes_.by_size.end()) { return std::nullopt; }
    auto const [size, offset] = *found;
    if (size == bytes) {
      live_.insert(holes_.extract(offset, size), offset, bytes);
    } else {
      live_.insert(offset, bytes);
      holes_.insert(holes_.extract(offset, size), offset + bytes, size - bytes);
    }
    live_bytes_ += bytes;
    return offset;
  }
  // Requires: `take` returned `offset` for `bytes`.
  void give(std::int64_t offset, std::int64_t bytes) noexcept {
    Nodes nodes = live_.extract(offset, bytes);
    live_bytes_ -= bytes;
    auto const next = holes_.by_offset.lower_bound(offset);
    if (next != holes_.by_offset.begin()) {
      auto const [before, size] = *std::prev(next);
      if (before + size == offset) {
        holes_.extract(before, size);
        offset = before;
        bytes += size;
      }
    }
    if (next != holes_.by_offset.end() && next->first == offset + bytes) {
      auto const [after, size] = *next;
      holes_.extract(after, size);
      bytes += size;
    }
    holes_.insert(std::move(nodes), offset, bytes);
  }

  [[nodiscard]] std::int64_t live_bytes() const noexcept { return live_bytes_; }
  [[nodiscard]] std::size_t hole_count() const noexcept { return holes_.by_offset.size(); }

 private:
  using ByOffset = std::map<std::int64_t, std::int64_t>;           // offset, bytes
  using BySize = std::set<std::pair<std::int64_t, std::int64_t>>;  // bytes, offset
  struct Nodes {
    ByOffset::node_type at;
    BySize::node_type of;
  };
  struct Index {
    void insert(std::int64_t offset, std::int64_t bytes) {
      by_offset.emplace(offset, bytes);
      try {
        by_size.emplace(bytes, offset);
      }
      catch (...) {
        by_offset.erase(offset);
        throw;
      }
    }
    void insert(Nodes nodes, std::int64_t offset, std::int64_t bytes) noexcept {
      nodes.at.key() = offset;
      nodes.at.mapped() = bytes;
      by_offset.insert(std::move(nodes.at));
      nodes.of.value() = {bytes, offset};
      by_size.insert(std::move(nodes.of));
    }
    Nodes extract(std::int64_t offset, std::int64_t bytes) noexcept {
      return {by_offset.extract(offset), by_size.extract({bytes, offset})};
    }

    ByOffset by_offset;
    BySize by_size;
  };

  Index holes_;
  Index live_;
  std::int64_t live_bytes_{0};
};

}  // namespace earmark::detail
