// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Pairs of free and allocate with 4,096 pieces live and sizes from 256 B to 128 KiB at random: what an allocator of
// columns meets. Give it any resource with room for 512 MiB; for device memory the bytes are not touched.
// Thread safety: one thread each. Ownership: frees what it allocated; the resource outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "memory/upstreams.hpp"

namespace earmark::bench {

class RandomSizes {
 public:
  RandomSizes(Reference resource, cuda::stream_ref stream) : resource_(resource), stream_(stream), draws_(draws) {
    std::mt19937 random{3};
    for (std::uint32_t& draw : draws_) { draw = static_cast<std::uint32_t>(random()); }
    for (std::uint32_t i = 0; i < live; ++i) { pieces_.push_back(allocate(draws_[i])); }
  }
  RandomSizes(RandomSizes const&) = delete;
  RandomSizes& operator=(RandomSizes const&) = delete;
  ~RandomSizes() {
    for (Piece const& piece : pieces_) { free(piece); }
  }

  void pairs(std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      std::uint32_t const draw = draws_[next_++ % draws];
      Piece& piece = pieces_[draw % live];
      free(piece);
      piece = allocate(draw / live);
    }
  }

 private:
  static constexpr std::uint32_t live = 4096;
  static constexpr std::uint32_t draws = 1U << 16;
  struct Piece {
    void* pointer;
    std::size_t bytes;
  };

  Piece allocate(std::uint32_t draw) {
    std::size_t const bytes = 256 + draw % (128 * 1024 - 256);
    return {resource_.allocate(stream_, bytes, 256), bytes};
  }
  void free(Piece const& piece) { resource_.deallocate(stream_, piece.pointer, piece.bytes, 256); }

  Reference resource_;
  cuda::stream_ref stream_;
  std::vector<std::uint32_t> draws_;
  std::vector<Piece> pieces_;
  std::uint32_t next_{0};
};

}  // namespace earmark::bench
