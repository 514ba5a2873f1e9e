// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What reservations cost, beside RMM's limiting adaptor and the cheapest accounting there could be (one atomic a
// thread), all in one run; and that the ledger keeps its promises under load. One line of JSON per figure; times are
// nanoseconds per allocate + deallocate pair of 1 KiB over an upstream that does nothing.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

namespace earmark {
namespace {

using Reference = cuda::mr::resource_ref<device_accessible>;

// An upstream that hands out one address and never looks at it.
struct NoUpstream {
  void* allocate(cuda::stream_ref, std::size_t, std::size_t) { return reinterpret_cast<void*>(4096); }
  void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t) noexcept {}
  void* allocate_sync(std::size_t, std::size_t) { return reinterpret_cast<void*>(4096); }
  void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
  bool operator==(NoUpstream const&) const { return true; }
  friend constexpr void get_property(NoUpstream const&, device_accessible) noexcept {}
};

// The ceiling: a resource that adds and subtracts on one atomic and checks nothing.
struct OneAtomic {
  std::atomic<std::int64_t>* bytes;
  cuda::mr::any_resource<device_accessible>* upstream;
  void* allocate(cuda::stream_ref stream, std::size_t size, std::size_t alignment) {
    bytes->fetch_add(static_cast<std::int64_t>(size));
    return upstream->allocate(stream, size, alignment);
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t size, std::size_t alignment) noexcept {
    upstream->deallocate(stream, pointer, size, alignment);
    bytes->fetch_sub(static_cast<std::int64_t>(size));
  }
  void* allocate_sync(std::size_t, std::size_t) { return nullptr; }
  void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
  bool operator==(OneAtomic const& other) const { return bytes == other.bytes; }
  friend constexpr void get_property(OneAtomic const&, device_accessible) noexcept {}
};

// Runs `body(thread, operations)` on each of `threads` threads at once.
// Returns: nanoseconds per operation of the slowest thread, in the quickest of several runs: disturbance only adds.
template <class Body>
double nanoseconds_per_operation(int threads, std::int64_t operations, Body const& body) {
  std::vector<double> runs;
  for (int run = 0; run < 40; ++run) {
    std::barrier start{threads};
    std::vector<double> taken(static_cast<std::size_t>(threads));
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        start.arrive_and_wait();
        auto const begin = std::chrono::steady_clock::now();
        body(t, operations);
        std::chrono::duration<double, std::nano> const elapsed = std::chrono::steady_clock::now() - begin;
        taken[static_cast<std::size_t>(t)] = elapsed.count() / static_cast<double>(operations);
      });
    }
    for (std::thread& worker : workers) { worker.join(); }
    runs.push_back(*std::max_element(taken.begin(), taken.end()));
  }
  return *std::min_element(runs.begin(), runs.end());
}

void allocate_and_free(Reference resource, std::int64_t times) {
  cuda::stream_ref const stream{cudaStream_t{}};
  for (std::int64_t i = 0; i < times; ++i) {
    void* pointer = resource.allocate(stream, 1024, 256);
    asm volatile("" : "+r"(pointer));  // the pair must not be optimised away
    resource.deallocate(stream, pointer, 1024, 256);
  }
}

struct Figure {
  char const* row;
  std::string what;
  std::string unit;
  double value;
  std::string figure_case{};
  std::optional<std::pair<char const*, double>> peer{};
  std::optional<double> ceiling{};
};

void print(Figure const& figure) {
  std::printf(R"({"row":"%s","what":"%s","value":%.2f,"unit":"%s")", figure.row, figure.what.c_str(), figure.value,
              figure.unit.c_str());
  if (!figure.figure_case.empty()) { std::printf(R"(,"case":"%s")", figure.figure_case.c_str()); }
  if (figure.peer) {
    std::printf(R"(,"peer":"%s","peer_value":%.2f,"ratio_to_peer":%.3f)", figure.peer->first, figure.peer->second,
                figure.peer->second / figure.value);
  }
  if (figure.ceiling) {
    std::printf(R"(,"ceiling":%.2f,"ratio_to_ceiling":%.3f)", *figure.ceiling, *figure.ceiling / figure.value);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

void print_skipped(char const* row) { std::printf("{\"row\":\"%s\",\"skipped\":\"cores\"}\n", row); }

std::string threads_case(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

// -- M0
// ----------------------------------------------------------------------------------------------------------------

// Every thread reserves, splits, merges, grows and allocates at random near the limit; buffers are freed by others.
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

void invariants_under_load(int cores) {
  int const threads = std::max(4, cores);
  Load load{200'000};
  print({.row = "M0",
         .what = "bytes above the limit plus balances left at the end",
         .unit = "B",
         .value = static_cast<double>(load.run(threads, 100'000)),
         .figure_case = threads_case(threads)});
}

// -- M1 to M4
// ----------------------------------------------------------------------------------------------------------

double own_reservations(int threads, std::int64_t pairs) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, 1_GiB};
  std::vector<MemoryReservation> reservations;
  for (int t = 0; t < threads; ++t) { reservations.push_back(adaptor.reserve(1_MiB, {.label = "bench"})); }
  return nanoseconds_per_operation(threads, pairs, [&](int t, std::int64_t times) {
    allocate_and_free(reservations[static_cast<std::size_t>(t)], times);
  });
}

double shared_reservation(int threads, std::int64_t pairs) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, 1_GiB};
  MemoryReservation const reservation = adaptor.reserve(16_MiB);
  return nanoseconds_per_operation(threads, pairs,
                                   [&](int, std::int64_t times) { allocate_and_free(reservation, times); });
}

double rmm_limiting(int threads, std::int64_t pairs) {
  rmm::mr::limiting_resource_adaptor limiting{NoUpstream{}, 1_GiB};
  return nanoseconds_per_operation(threads, pairs,
                                   [&](int, std::int64_t times) { allocate_and_free(Reference{limiting}, times); });
}

double one_atomic_per_thread(int threads, std::int64_t pairs) {
  struct alignas(128) Padded {
    std::atomic<std::int64_t> bytes{0};
  };
  cuda::mr::any_resource<device_accessible> upstream{NoUpstream{}};
  auto const counters = std::make_unique<Padded[]>(static_cast<std::size_t>(threads));
  return nanoseconds_per_operation(threads, pairs, [&](int t, std::int64_t times) {
    OneAtomic resource{&counters[static_cast<std::size_t>(t)].bytes, &upstream};
    allocate_and_free(Reference{resource}, times);
  });
}

double reserve_and_close(int threads, std::int64_t times) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, std::size_t{1} << 50};
  return nanoseconds_per_operation(threads, times, [&](int, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      MemoryReservation reservation = adaptor.reserve(1_MiB);
      reservation.close();
    }
  });
}

void costs(int cores) {
  constexpr std::int64_t pairs = 200'000;
  double const limiting = rmm_limiting(1, pairs);
  print({.row = "M1",
         .what = "pair inside an own reservation",
         .unit = "ns",
         .value = own_reservations(1, pairs),
         .figure_case = threads_case(1),
         .peer = {{"RMM limiting", limiting}},
         .ceiling = one_atomic_per_thread(1, pairs)});
  int const threads = std::min(cores, 16);
  if (threads == 1) {
    print_skipped("M2");
    print_skipped("M3");
  } else {
    double const contended = rmm_limiting(threads, pairs / 4);
    print({.row = "M2",
           .what = "pair, each thread with its own reservation",
           .unit = "ns",
           .value = own_reservations(threads, pairs),
           .figure_case = threads_case(threads),
           .peer = {{"RMM limiting", contended}},
           .ceiling = one_atomic_per_thread(threads, pairs)});
    print({.row = "M3",
           .what = "pair, all threads sharing one reservation",
           .unit = "ns",
           .value = shared_reservation(threads, pairs / 4),
           .figure_case = threads_case(threads),
           .peer = {{"RMM limiting", contended}}});
  }
  for (int t : {1, threads}) {
    print({.row = "M4",
           .what = "reserve + close",
           .unit = "ns",
           .value = reserve_and_close(t, pairs / 4),
           .figure_case = threads_case(t)});
    if (threads == 1) { break; }
  }
}

}  // namespace
}  // namespace earmark

int main() {
  int const cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  earmark::invariants_under_load(cores);
  earmark::costs(cores);
}
