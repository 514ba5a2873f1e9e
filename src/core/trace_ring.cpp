// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/trace_ring.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <stdexcept>

#include "core/trace_slot.hpp"

namespace earmark {
namespace {

struct ProgramAtomics {
  template <class T>
  using Atomic = std::atomic<T>;
};
struct alignas(64) Slot : detail::TraceSlot<ProgramAtomics, 6> {};
static_assert(sizeof(Slot) == 64, "an event is a cache line");

using Words = Slot::Words;

Words pack(TraceEvent const& event, std::uint32_t thread) noexcept {
  return {static_cast<std::uint64_t>(event.time.time_since_epoch().count()),
          event.id,
          static_cast<std::uint64_t>(event.bytes),
          static_cast<std::uint64_t>(event.after),
          (static_cast<std::uint64_t>(event.label) << 32) | static_cast<std::uint64_t>(event.source),
          (static_cast<std::uint64_t>(thread) << 32) | static_cast<std::uint64_t>(event.kind)};
}

TraceEvent unpack(Words const& words) noexcept {
  return {.time = Clock::time_point{Clock::duration{static_cast<Clock::duration::rep>(words[0])}},
          .kind = static_cast<TraceKind>(words[5] & 0xffU),
          .source = static_cast<TraceLabel>(words[4] & 0xffff'ffffU),
          .label = static_cast<TraceLabel>(words[4] >> 32),
          .id = words[1],
          .bytes = static_cast<std::int64_t>(words[2]),
          .after = static_cast<std::int64_t>(words[3]),
          .thread = static_cast<std::uint32_t>(words[5] >> 32)};
}

// The system call costs more than all the rest of a write; its answer never changes for a thread.
std::uint32_t this_thread() noexcept {
  thread_local std::uint32_t number = 0;
  if (number == 0) [[unlikely]] { number = static_cast<std::uint32_t>(::gettid()); }
  return number;
}

std::size_t checked(std::size_t wanted, int most_bits, char const* what) {
  if (wanted > std::size_t{1} << most_bits) { throw std::invalid_argument(what); }
  return std::bit_ceil(std::max<std::size_t>(wanted, 1));
}

}  // namespace

std::string_view to_string(TraceKind kind) noexcept {
  switch (kind) {
    case TraceKind::None: return "none";
    case TraceKind::Reserve: return "reserve";
    case TraceKind::Refuse: return "refuse";
    case TraceKind::Wait: return "wait";
    case TraceKind::Grant: return "grant";
    case TraceKind::GiveUp: return "give_up";
    case TraceKind::Grow: return "grow";
    case TraceKind::Shrink: return "shrink";
    case TraceKind::Split: return "split";
    case TraceKind::Merge: return "merge";
    case TraceKind::Close: return "close";
    case TraceKind::Allocate: return "allocate";
    case TraceKind::Free: return "free";
    case TraceKind::Exhausted: return "exhausted";
    case TraceKind::Limit: return "limit";
    case TraceKind::Pressure: return "pressure";
    case TraceKind::Overbook: return "overbook";
    case TraceKind::Abort: return "abort";
  }
  return "unknown";
}

struct alignas(64) TraceRing::Lane {
  std::atomic<std::uint64_t> next{0};  // ticket
  std::unique_ptr<Slot[]> slots;
};

TraceRing::TraceRing(TraceRingOptions const& options) : slot_mask_(0), lane_mask_(0) {
  std::size_t const lanes = checked(options.lanes, 16, "a trace ring has at most 2^16 lanes");
  std::size_t const events = std::max(lanes, checked(options.events, 32, "a trace ring keeps at most 2^32 events"));
  lane_mask_ = lanes - 1;
  slot_mask_ = events / lanes - 1;
  lanes_ = std::make_unique<Lane[]>(lanes);
  for (std::size_t i = 0; i < lanes; ++i) { lanes_[i].slots = std::make_unique<Slot[]>(slot_mask_ + 1); }
  {
    MutexLock const lock{mutex_};
    texts_.reserve(most_labels);
  }
  static_cast<void>(label(""));
}

TraceRing::~TraceRing() = default;

TraceLabel TraceRing::label(std::string_view text) {
  MutexLock const lock{mutex_};
  if (auto const found = labels_.find(text); found != labels_.end()) { return found->second; }
  if (texts_.size() >= most_labels - 1) { text = "(other)"; }
  auto const [entry, inserted] = labels_.try_emplace(std::string{text}, static_cast<TraceLabel>(texts_.size()));
  if (inserted) { texts_.push_back(entry->first); }
  return entry->second;
}

std::string_view TraceRing::text(TraceLabel label) const {
  MutexLock const lock{mutex_};
  auto const number = static_cast<std::size_t>(label);
  return number < texts_.size() ? texts_[number] : std::string_view{};
}

void TraceRing::write(TraceEvent const& event) noexcept {
  std::uint32_t const thread = this_thread();
  Lane& lane = lanes_[thread & lane_mask_];
  std::uint64_t const ticket = lane.next.fetch_add(1, std::memory_order_relaxed);
  lane.slots[ticket & slot_mask_].try_write(ticket, pack(event, thread));
}

TraceRing::Reading TraceRing::read() const {
  Reading reading;
  reading.events.reserve(capacity());
  for (std::size_t i = 0; i <= lane_mask_; ++i) { read_lane(lanes_[i], slot_mask_, reading); }
  reading.lost = reading.written - reading.events.size();
  std::stable_sort(reading.events.begin(), reading.events.end(),
                   [](TraceEvent const& a, TraceEvent const& b) { return a.time < b.time; });
  return reading;
}

void TraceRing::read_lane(Lane const& lane, std::size_t slot_mask, Reading& reading) {
  std::uint64_t const end = lane.next.load(std::memory_order_acquire);
  std::uint64_t const kept = std::min<std::uint64_t>(end, slot_mask + 1);
  for (std::uint64_t ticket = end - kept; ticket < end; ++ticket) {
    Words words;
    if (lane.slots[ticket & slot_mask].try_read(ticket, words)) { reading.events.push_back(unpack(words)); }
  }
  reading.written += end;
}

}  // namespace earmark
