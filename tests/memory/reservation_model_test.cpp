// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Random operations on an adaptor, compared after each with a model that is a few lines of plain arithmetic.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

constexpr std::int64_t granule = 64;

std::int64_t charge(std::size_t bytes) { return (static_cast<std::int64_t>(bytes) + granule - 1) / granule * granule; }

// What the adaptor should know: per reservation its balance and what is live, plus live bytes that belong to nobody.
struct Model {
  struct Reservation {
    std::int64_t balance;
    std::int64_t live;
    bool open{true};
  };
  std::int64_t limit;
  std::vector<Reservation> reservations;
  [[nodiscard]] std::int64_t committed() const {
    std::int64_t sum = 0;
    for (Reservation const& r : reservations) { sum += r.balance + r.live; }
    return sum;
  }
  [[nodiscard]] bool fits(std::int64_t bytes) const {
    return bytes == 0 || committed() + bytes <= limit;  // nothing is always there
  }
};

class System {
 public:
  explicit System(std::size_t limit) : host_(limit), model_{static_cast<std::int64_t>(limit), {}} {}

  void step() {
    switch (*rc::gen::inRange(0, 10)) {
      case 0: reserve(); break;
      case 1:
      case 2: allocate(); break;
      case 3:
      case 4: free(); break;
      case 5: grow(); break;
      case 6: shrink(); break;
      case 7: split(); break;
      case 8: merge(); break;
      default: *rc::gen::inRange(0, 3) == 0 ? set_limit() : close(); break;
    }
    compare();
  }
  void finish() {
    while (!buffers_.empty()) { free_buffer(buffers_.size() - 1); }
    handles_.clear();
    RC_ASSERT(host_.adaptor.committed() == 0);
    RC_ASSERT(host_.adaptor.outstanding().empty());
    RC_ASSERT(host_.faults.live_bytes() == 0);
    RC_ASSERT(host_.faults.wrong_deallocations() == 0);
  }

 private:
  struct Buffer {
    HostMemoryReservation::Resource resource;
    void* pointer;
    std::size_t bytes;
    std::size_t owner;  // index of the reservation that the model credits
  };

  static std::size_t size() { return *rc::gen::inRange<std::size_t>(0, 1000); }
  // The index of a handle that is still held, open or closed.
  std::optional<std::size_t> any() {
    std::vector<std::size_t> held;
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      if (handles_[i]) { held.push_back(i); }
    }
    if (held.empty()) { return std::nullopt; }
    return *rc::gen::elementOf(held);
  }

  void reserve() {
    std::size_t const bytes = size();
    bool const expected = model_.fits(charge(bytes));
    std::optional<HostMemoryReservation> made = host_.adaptor.try_reserve(bytes);
    RC_ASSERT(made.has_value() == expected);
    if (made) { add(std::move(*made), charge(bytes)); }
  }
  void allocate() {
    auto const i = any();
    if (!i) { return; }
    std::size_t const bytes = size();
    Model::Reservation& model = model_.reservations[*i];
    bool const expected = bytes == 0 || (model.open && model.balance >= charge(bytes));
    auto resource = handles_[*i].resource();
    try {
      void* const pointer = resource.allocate_sync(bytes, 64);
      RC_ASSERT(expected);
      buffers_.push_back({resource, pointer, bytes, *i});
      model.balance -= charge(bytes);
      model.live += charge(bytes);
    }
    catch (ReservationExhausted const&) {
      RC_ASSERT(!expected && model.open);
    }
    catch (ReservationClosed const&) {
      RC_ASSERT(!expected && !model.open);
    }
  }
  void free() {
    if (!buffers_.empty()) { free_buffer(*rc::gen::inRange<std::size_t>(0, buffers_.size())); }
  }
  void free_buffer(std::size_t b) {
    Buffer buffer = std::move(buffers_[b]);
    buffers_.erase(buffers_.begin() + static_cast<std::ptrdiff_t>(b));
    buffer.resource.deallocate_sync(buffer.pointer, buffer.bytes, 64);
    Model::Reservation& model = model_.reservations[buffer.owner];
    model.live -= charge(buffer.bytes);
    if (model.open) { model.balance += charge(buffer.bytes); }
  }
  void grow() {
    auto const i = any();
    if (!i) { return; }
    std::size_t const bytes = size();
    Model::Reservation& model = model_.reservations[*i];
    bool const expected = model.open && model_.fits(charge(bytes));
    RC_ASSERT(handles_[*i].try_grow(bytes) == expected);
    if (expected) { model.balance += charge(bytes); }
  }
  void shrink() {
    auto const i = any();
    if (!i) { return; }
    RC_ASSERT(handles_[*i].shrink_to_fit() == model_.reservations[*i].balance);
    model_.reservations[*i].balance = 0;
  }
  void split() {
    auto const i = any();
    if (!i) { return; }
    std::size_t const bytes = size();
    bool const expected = model_.reservations[*i].open && model_.reservations[*i].balance >= charge(bytes);
    try {
      HostMemoryReservation part = handles_[*i].split(bytes);
      RC_ASSERT(expected);
      model_.reservations[*i].balance -= charge(bytes);
      add(std::move(part), charge(bytes));
    }
    catch (MemoryError const&) {
      RC_ASSERT(!expected);
    }
  }
  void merge() {
    auto const i = any();
    auto const j = any();
    if (!i || *i == *j) { return; }
    Model::Reservation& target = model_.reservations[*i];
    Model::Reservation& other = model_.reservations[*j];
    handles_[*i].merge(std::move(handles_[*j]));
    if (!other.open) { return; }  // brings nothing; its live bytes go their own way
    if (target.open) { target.balance += other.balance; }
    target.live += other.live;
    other = {0, 0, false};
    for (Buffer& buffer : buffers_) {
      if (buffer.owner == *j) { buffer.owner = *i; }
    }
  }
  void close() {
    auto const i = any();
    if (!i) { return; }
    if (*rc::gen::inRange(0, 2) == 0) {
      handles_[*i].close();
    } else {
      handles_[*i] = HostMemoryReservation{};
    }
    model_.reservations[*i].open = false;
    model_.reservations[*i].balance = 0;
  }
  void set_limit() {
    std::size_t const limit = *rc::gen::inRange<std::size_t>(0, 6000);
    host_.adaptor.set_limit(limit);
    model_.limit = static_cast<std::int64_t>(limit);
  }

  void add(HostMemoryReservation handle, std::int64_t bytes) {
    handles_.push_back(std::move(handle));
    model_.reservations.push_back({bytes, 0});
  }
  void compare() {
    AdaptorSnapshot const now = host_.adaptor.snapshot();
    RC_ASSERT(now.limit == model_.limit);
    RC_ASSERT(now.committed == model_.committed());
    RC_ASSERT(host_.adaptor.available() == model_.limit - model_.committed());
    std::int64_t live = 0;
    std::int64_t reserved = 0;
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      Model::Reservation const& model = model_.reservations[i];
      live += model.live;
      if (model.open) { reserved += model.balance + model.live; }
      if (!handles_[i]) { continue; }
      RC_ASSERT(handles_[i].balance() == model.balance);
      RC_ASSERT(handles_[i].spent() == model.live);
      RC_ASSERT(handles_[i].closed() == !model.open);
    }
    RC_ASSERT(now.allocated == live);
    RC_ASSERT(now.reserved == reserved);
  }

  WatchedHost host_;
  Model model_;
  std::vector<HostMemoryReservation> handles_;
  std::vector<Buffer> buffers_;
};

RC_GTEST_PROP(MemoryModel, AgreesWithPlainArithmeticAfterEveryOperation, ()) {
  System system{*rc::gen::inRange<std::size_t>(0, 6000)};
  int const steps = *rc::gen::inRange(0, 80);
  for (int i = 0; i < steps; ++i) { system.step(); }
  system.finish();
}

}  // namespace
}  // namespace earmark
