// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M0: the ledger keeps its promises under load. Every thread reserves, splits, merges, grows and allocates at random
// near the limit.
#include <algorithm>
#include <cstdint>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "measuring/report.hpp"

namespace earmark::bench {
namespace {

class Load {
 public:
  explicit Load(std::size_t limit) : limit_(static_cast<std::int64_t>(limit)), adaptor_(HostMemoryResource{}, limit) {}

  // Returns: the most bytes above the limit at any time, plus what is still committed in the end.
  std::int64_t run(int threads, int rounds) {
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([this, t, rounds] { work(static_cast<std::uint32_t>(t), rounds); });
    }
    for (std::thread& worker : workers) { worker.join(); }
    return std::max<std::int64_t>(adaptor_.peak_committed() - limit_, 0) + adaptor_.committed() +
           adaptor_.snapshot().allocated;
  }

 private:
  void work(std::uint32_t seed, int rounds) {
    std::mt19937 random{seed};
    for (int round = 0; round < rounds; ++round) {
      auto reservation = adaptor_.try_reserve(random() % 100'000, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
      if (!reservation) { continue; }
      auto resource = reservation->resource();
      std::size_t const bytes = 1 + random() % 50'000;
      try {
        void* const first = resource.allocate_sync(bytes, 64);
        auto part = reservation->split(static_cast<std::size_t>(reservation->balance() / 2));
        reservation->merge(std::move(part));
        (void)reservation->try_grow(random() % 10'000);
        if (round % 3 == 0) { reservation->close(); }
        resource.deallocate_sync(first, bytes, 64);
      }
      catch (std::bad_alloc const&) {
        // refused near the limit: expected
      }
    }
  }

  std::int64_t limit_;
  HostReservationAwareResourceAdaptor adaptor_;
};

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  using namespace earmark;
  measuring::Report report{argc, argv};
  if (!report.wants("M0")) { return 0; }
  int const threads = std::max<int>(4, static_cast<int>(measuring::usable_cores().size()));
  bench::Load load{200'000};
  report.print({.row = "M0",
                .what = "bytes above the limit plus balances left at the end",
                .unit = "B",
                .value = static_cast<double>(load.run(threads, 100'000)),
                .figure_case = measuring::threads_case(threads)});
}
