// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M5: allocate + deallocate from a preallocated reservation of a device's memory, beside what gives that memory without
// one: cudaMallocAsync, and RMM's arena and pool. Each thread has its stream and, here, its reservation.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory_cuda/cuda_stream_events.hpp"
#include "measuring/race.hpp"
#include "measuring/report.hpp"
#include "memory/random_sizes.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {
namespace {

using measuring::Cost;
using measuring::Race;
using measuring::Report;
using measuring::threads_case;

constexpr int most_threads = 16;
constexpr std::size_t bytes_per_thread = 512_MiB;
constexpr char const* preallocated = "preallocated reservation";
constexpr char const* bare = "cudaMallocAsync";
constexpr char const* arena = "RMM arena";
constexpr char const* pool = "RMM pool";

bool has_device() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

std::vector<cudaStream_t> make_streams() {
  std::vector<cudaStream_t> streams(most_threads);
  for (cudaStream_t& stream : streams) {
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) { std::abort(); }
  }
  return streams;
}

// What a thread allocates from.
using Resources = std::shared_ptr<std::vector<AnyResource>>;

Resources shared_by_all(AnyResource resource) {
  return std::make_shared<std::vector<AnyResource>>(most_threads, std::move(resource));
}

class Contest {
 public:
  explicit Contest(Report& report) : report_(report), streams_(make_streams()) {
    ReservationAwareResourceAdaptor adaptor{rmm::mr::cuda_async_memory_resource{}, most_threads * bytes_per_thread,
                                            AdaptorOptions{.events = &events_}};
    auto const own = std::make_shared<std::vector<AnyResource>>();
    for (int t = 0; t < most_threads; ++t) {
      reservations_.push_back(adaptor.reserve(bytes_per_thread, {.backing = Backing::Preallocated}));
      own->emplace_back(reservations_.back());
    }
    AnyResource const device{rmm::mr::cuda_memory_resource{}};
    contestants_ = {{preallocated, own},
                    {bare, shared_by_all(rmm::mr::cuda_async_memory_resource{std::size_t{1} << 30})},
                    {arena, shared_by_all(rmm::mr::arena_memory_resource{device, std::size_t{8} << 30})},
                    {pool, shared_by_all(rmm::mr::pool_memory_resource{device, std::size_t{8} << 30})}};
  }

  void last_in_first_out(int threads) {
    Race race{threads, report_.race()};
    for (auto const& [name, resources] : contestants_) {
      race.enter(name, [this, resources](int thread, std::int64_t times) {
        auto const t = static_cast<std::size_t>(thread);
        allocate_and_free((*resources)[t], cuda::stream_ref{streams_[t]}, times);
      });
    }
    print(race, threads_case(threads) + ", last in first out");
  }

  void random_sizes(int threads) {
    Race race{threads, report_.race()};
    for (auto const& [name, resources] : contestants_) {
      auto const users = std::make_shared<std::vector<std::unique_ptr<RandomSizes>>>();
      for (std::size_t t = 0; t < static_cast<std::size_t>(threads); ++t) {
        users->push_back(std::make_unique<RandomSizes>((*resources)[t], cuda::stream_ref{streams_[t]}));
      }
      race.enter(name,
                 [users](int thread, std::int64_t times) { (*users)[static_cast<std::size_t>(thread)]->pairs(times); });
    }
    print(race, threads_case(threads) + ", random sizes, 4096 live each");
  }

 private:
  void print(Race const& race, std::string const& which) {
    std::map<std::string, Cost> const costs = race.run();
    Cost const& ours = costs.at(preallocated);
    for (char const* const peer : {bare, arena, pool}) {
      report_.print({.row = "M5",
                     .what = "allocate + deallocate from a preallocated reservation",
                     .unit = "ns",
                     .value = ours.median,
                     .figure_case = which + ", " + peer,
                     .peer = {{peer, costs.at(peer).median}},
                     .spread = ours});
    }
  }

  Report& report_;
  CudaStreamEvents events_;
  std::vector<cudaStream_t> streams_;
  std::vector<MemoryReservation> reservations_;
  std::vector<std::pair<char const*, Resources>> contestants_;
};

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  using namespace earmark;
  measuring::Report report{argc, argv};
  if (!report.wants("M5")) { return 0; }
  if (!bench::has_device()) {
    report.print_skipped("M5", "no device");
    return 0;
  }
  {
    bench::Contest contest{report};
    for (int const threads : measuring::thread_counts()) {
      contest.last_in_first_out(threads);
      contest.random_sizes(threads);
    }
  }
  for (int const threads : measuring::thread_counts_without_cores()) {
    report.print_skipped("M5", "cores", measuring::threads_case(threads));
  }
}
