// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The last things that happened: a ring of fixed size that any thread writes events to, without locks, allocation or
// waiting, and that can be read while they do. The newest events overwrite the oldest; a reader gets each event whole
// or not at all, and is told how many it did not get.
//
//   TraceRing ring{{.events = 1 << 16}};
//   TraceLabel const label = ring.label("scan");                     // once; takes a lock
//   ring.write({.time = clock.now(), .kind = TraceKind::Reserve, .label = label, .id = 7, .bytes = 4096});
//   for (TraceEvent const& event : ring.read().events) { ... ring.text(event.label) ... }
//
// When to use: to see afterwards in which order things happened, and as the source of a timeline. When not: for sums
// (use counters; a ring forgets) or for lines that people read as they come (`LogSink`).
// Thread safety: any thread, all functions. Ownership: outlives what writes to it; owns the labels' texts.
// Memory: 64 bytes an event, taken when it is made.
//
// How it works: a writer takes a ticket (one fetch_add) and claims the ticket's slot by compare-and-swap. A slot that
// is claimed by, or was passed to, another writer that went once round is left alone, and the event counts as lost: no
// writer ever waits. A reader looks at a slot's stamp before and after, so that a torn event shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "earmark/core/clock.hpp"
#include "earmark/core/thread_annotations.hpp"

namespace earmark {

// What happened. Numbers are kept once given, since traces are stored: memory 1-31, tiers 32-63, flow 64-95.
enum class TraceKind : std::uint8_t {
  None = 0,
  Reserve = 1,     // a reservation was granted; `bytes` of it
  Refuse = 2,      // one was refused; `bytes` asked for
  Wait = 3,        // a request joined the wait queue
  Grant = 4,       // a waiting request got its bytes
  GiveUp = 5,      // a waiting request left without: deadline, stop, abort or shutdown
  Grow = 6,        // an open reservation took more
  Shrink = 7,      // an open reservation gave back
  Split = 8,       // `bytes` moved into a new reservation
  Merge = 9,       // a reservation went into another
  Close = 10,      // a reservation was closed; `bytes` went back at once
  Allocate = 11,   // out of a reservation, or of the adaptor without one (`id` 0)
  Free = 12,       // the other way
  Exhausted = 13,  // an allocation did not fit into its reservation
  Limit = 14,      // the limit was changed to `bytes`
  Pressure = 15,   // the queue's head misses `bytes`; 0: no longer
  Overbook = 16,   // a reservation passed the limit by `bytes`
  Abort = 17,      // a consumer was aborted
};

// Returns: the kind's name in traces, e.g. "reserve", "give_up".
[[nodiscard]] std::string_view to_string(TraceKind kind) noexcept;

// A text that a ring knows; `None` is the empty one.
enum class TraceLabel : std::uint32_t { None = 0 };

struct TraceEvent {
  Clock::time_point time{};             // when, by the writer's clock
  TraceKind kind{TraceKind::None};      //
  TraceLabel source{TraceLabel::None};  // where: the tier, adaptor or channel that it happened to
  TraceLabel label{TraceLabel::None};   // on whose behalf
  std::uint64_t id{0};                  // which reservation, request, task or message; 0: none
  std::int64_t bytes{0};                // how many
  std::int64_t after{0};    // what it led to, where the writer knows: for memory, bytes committed afterwards
  std::uint32_t thread{0};  // set by `write`: the system's number of the thread, as debuggers show it
};

struct TraceRingOptions {
  std::size_t events{std::size_t{1} << 16};  // kept at least; rounded up to a power of two
  // Threads of different lanes do not meet on a cache line, but each lane forgets on its own: with N lanes a single
  // busy thread keeps only 1/N of the events. Rounded up to a power of two.
  std::size_t lanes{1};
};

class TraceRing {
 public:
  static constexpr std::size_t most_labels = 4096;  // further texts share the label "(other)"

  // Throws: std::bad_alloc, std::invalid_argument for more than 2^32 events or 2^16 lanes.
  explicit TraceRing(TraceRingOptions const& options = {});
  TraceRing(TraceRing const&) = delete;
  TraceRing& operator=(TraceRing const&) = delete;
  ~TraceRing();

  // The label of `text`: the same for the same text. Takes a lock; ask once and keep it. Throws: std::bad_alloc.
  [[nodiscard]] TraceLabel label(std::string_view text);
  // Returns: the label's text, valid while the ring lives.
  [[nodiscard]] std::string_view text(TraceLabel label) const;

  // Keeps the event, or loses it when the ring goes round while another writer stands still in the same slot.
  void write(TraceEvent const& event) noexcept;

  struct Reading {
    std::vector<TraceEvent> events;  // by time; events of one time in the order in which their lane got them
    std::uint64_t written{0};        // events ever written, up to the moment at which each lane was looked at
    std::uint64_t lost{0};           // those of them that are not in `events`: overwritten, or just being written
  };
  // Throws: std::bad_alloc.
  [[nodiscard]] Reading read() const;

  [[nodiscard]] std::size_t capacity() const noexcept { return (slot_mask_ + 1) * (lane_mask_ + 1); }
  [[nodiscard]] std::size_t lanes() const noexcept { return lane_mask_ + 1; }

 private:
  struct Lane;

  static void read_lane(Lane const& lane, std::size_t slot_mask, Reading& reading);

  std::size_t slot_mask_;
  std::size_t lane_mask_;
  std::unique_ptr<Lane[]> lanes_;

  mutable Mutex mutex_;
  std::map<std::string, TraceLabel, std::less<>> labels_ EARMARK_GUARDED_BY(mutex_);
  std::vector<std::string_view> texts_ EARMARK_GUARDED_BY(mutex_);  // the keys of `labels_`, by number
};

}  // namespace earmark
