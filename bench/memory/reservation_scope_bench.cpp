// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a scope costs: an allocation and its free through RMM's current device resource, by reference as libraries'
// temporaries are and with an owning copy as containers are, beside the reservation itself. No row of the figures: the
// ceiling is the reservation without a scope.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <rmm/mr/per_device_resource.hpp>
#include <string>
#include <utility>
#include <vector>

#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory/reservation_scope.hpp"
#include "measuring/report.hpp"

namespace earmark::bench {
namespace {

using Any = cuda::mr::any_resource<device_accessible>;
using Ref = rmm::device_async_resource_ref;

rmm::cuda_device_id const device{0};

// The least that an upstream can cost: one block a thread, handed out again and again.
struct NoUpstream {
  static inline thread_local std::byte block[256];
  void* allocate(cuda::stream_ref, std::size_t, std::size_t) { return block; }
  void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t) noexcept {}
  void* allocate_sync(std::size_t, std::size_t) { return block; }
  void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
  bool operator==(NoUpstream const&) const = default;
  [[maybe_unused]] friend constexpr void get_property(NoUpstream const&, device_accessible) noexcept {}
};

enum class Through : unsigned char { TheReservation, RmmOutsideAScope, RmmInsideAScope };
enum class Copy : unsigned char { None, Owning };

template <class Resource>
void pair(Resource& resource) {
  cuda::stream_ref const stream{cudaStream_t{}};
  void* const pointer = resource.allocate(stream, 256, 256);
  resource.deallocate(stream, pointer, 256, 256);
}

void pairs(MemoryReservation const& reservation, Through through, Copy copy, std::int64_t times) {
  std::optional<ReservationScope> scope;
  if (through == Through::RmmInsideAScope) { scope.emplace(reservation); }
  Ref resource = reservation;
  if (through != Through::TheReservation) { resource = rmm::mr::get_per_device_resource_ref(device); }
  for (std::int64_t i = 0; i < times; ++i) {
    if (copy == Copy::Owning) {
      Any owner{resource};
      pair(owner);
    } else {
      pair(resource);
    }
  }
}

void measure(measuring::Report& report, int threads, Copy copy) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, std::size_t{1} << 30};
  std::vector<MemoryReservation> reservations;
  for (int i = 0; i < threads; ++i) { reservations.push_back(adaptor.reserve(std::size_t{1} << 16)); }
  measuring::Race race{threads};
  auto const enter = [&](std::string name, Through through) {
    race.enter(std::move(name), [=, &reservations](int thread, std::int64_t times) {
      pairs(reservations[static_cast<std::size_t>(thread)], through, copy, times);
    });
  };
  enter("reservation", Through::TheReservation);
  enter("outside", Through::RmmOutsideAScope);
  enter("inside", Through::RmmInsideAScope);
  std::map<std::string, measuring::Cost> const costs = race.run();
  std::string const how = copy == Copy::Owning ? ", with an owning copy" : ", by reference";
  for (char const* const where : {"outside", "inside"}) {
    report.print({.row = "scope",
                  .what = std::string{"pair "} + where + " a scope" + how,
                  .unit = "ns",
                  .value = costs.at(where).median,
                  .figure_case = measuring::threads_case(threads),
                  .ceiling = costs.at("reservation").median,
                  .spread = costs.at(where)});
  }
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  using namespace earmark;
  measuring::Report report{argc, argv};
  if (!report.wants("scope")) { return 0; }
  rmm::mr::set_per_device_resource(bench::device, bench::NoUpstream{});
  ScopeDispatcher const dispatcher = install_scope_dispatcher(bench::device);
  for (int const threads : measuring::thread_counts()) {
    bench::measure(report, threads, bench::Copy::None);
    bench::measure(report, threads, bench::Copy::Owning);
  }
}
