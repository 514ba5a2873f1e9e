// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the conformance suite of resources is told of a resource: derive from `ResourceSubject`, add `Resource` and
// `resource()`, and say again (shadow) what differs from the defaults. See `resource_conformance.hpp` for an example.
// Thread safety: `resource()`, `stream()` and `used()` are called by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "earmark/testing/faulty_resource.hpp"

namespace earmark::testing {

enum class Forms : std::uint8_t { Both, StreamOrderedOnly, SynchronousOnly };
enum class Writes : std::uint8_t { FromHost, Never };            // whether the suite may write to blocks from the host
enum class OddAlignments : std::uint8_t { Refused, Undefined };  // those that are no power of two
enum class MovedFrom : std::uint8_t { Usable, AssignableOnly };
enum class FreedBytes : std::uint8_t { GoBack, AreKept };  // kept by a resource that pools
enum class ZeroBytes : std::uint8_t { StayAway, ReachUpstream };

struct ResourceSubject {
  // To be added: `using Resource = ...` and `Resource resource()`, which returns equal copies of one resource that has
  // room for at least `largest` + 256 KiB.

  // The properties to expect, exactly; `void` to expect nothing.
  using Properties = void;
  static constexpr Forms forms = Forms::Both;
  static constexpr Writes writes = Writes::FromHost;
  static constexpr OddAlignments odd_alignments = OddAlignments::Undefined;
  static constexpr MovedFrom moved_from = MovedFrom::Usable;
  static constexpr FreedBytes freed_bytes = FreedBytes::GoBack;
  static constexpr ZeroBytes zero_bytes = ZeroBytes::StayAway;
  // The largest block to try.
  static constexpr std::size_t largest = std::size_t{1} << 20;
  // The largest alignment to try.
  static constexpr std::size_t largest_alignment = 4096;
  // The most bytes it can serve; above that it must refuse without asking its upstream. 0: it has no bound of its own.
  static constexpr std::size_t capacity = 0;

  // Watches the upstream, and makes it fail, if the subject puts it there (`FaultyResource{upstream, faults}`).
  FaultControl faults;

  // Bytes that the resource's accounting says are in use: must come back to what they were.
  [[nodiscard]] std::int64_t used() { return 0; }
  // The stream of stream-ordered calls. Frees on other threads use it too.
  [[nodiscard]] cuda::stream_ref stream() { return earmark::detail::no_stream(); }
};

}  // namespace earmark::testing
