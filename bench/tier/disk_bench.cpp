// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// T4: host memory to a disk and back, beside the bare disk at the same block size in the same run, and what the
// processor does meanwhile. EARMARK_BENCH_DIRECTORY says where; the default is the folder for temporary files.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/tier/buffer_resource.hpp"
#include "earmark/tier/posix_spill_disk.hpp"
#include "measuring/report.hpp"
#include "tier/raw_disk.hpp"

namespace earmark::bench {
namespace {

constexpr std::size_t bytes = 256_MiB;
constexpr std::size_t block_bytes = 1_MiB;
constexpr unsigned in_flight = 8;

std::string folder() {
  char const* const named = std::getenv("EARMARK_BENCH_DIRECTORY");
  return named != nullptr ? named : std::filesystem::current_path().string();
}

double cpu_seconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Pass {
  double seconds;
  double cores;  // that were busy
};
template <class Work>
Pass timed(Work const& work) {
  double const cpu = cpu_seconds();
  auto const start = std::chrono::steady_clock::now();
  work();
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {seconds, (cpu_seconds() - cpu) / seconds};
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Series {
  std::vector<double> rates;
  std::vector<double> cores;
  void add(Pass const& pass) {
    rates.push_back(static_cast<double>(bytes) / pass.seconds / 1e9);
    cores.push_back(pass.cores);
  }
};

void print(measuring::Report& report, std::string const& direction, Series const& ours, Series const& raw) {
  report.print({.row = "T4",
                .what = "256 MiB of host memory " + direction + " a disk",
                .unit = "GB/s",
                .value = median(ours.rates),
                .figure_case = direction,
                .ceiling = median(raw.rates),
                .better = measuring::Better::More});
  report.print({.row = "T4",
                .what = "cores busy meanwhile",
                .unit = "cores",
                .value = median(ours.cores),
                .figure_case = direction + ", processor",
                .peer = {{"the bare disk", median(raw.cores)}}});
}

void measure(measuring::Report& report) {
  ThreadPool pool{2};
  PosixFileSystem files;
  PosixSpillDisk disk{pool};
  std::string const where = folder() + "/earmark-bench-" + std::to_string(std::time(nullptr));
  {
    DiskTier const tier{
        files, disk, {.space = {.directory = where}, .block_bytes = block_bytes, .blocks_in_flight = in_flight}};
    HostReservationAwareResourceAdaptor const host{HostMemoryResource{}, 2_GiB};
    BufferResource buffers{{.host = host, .disk = tier}};
    cuda::stream_ref const stream{cudaStream_t{}};
    HostMemoryReservation memory = buffers.host().reserve(2 * bytes);
    DiskSpaceReservation space = buffers.disk().adaptor().reserve(bytes);
    Buffer source = buffers.allocate(bytes, stream, memory);
    std::memset(source.data(), 1, bytes);
    RawDisk bare{where, bytes, block_bytes, in_flight};
    Series written;
    Series read;
    Series bare_written;
    Series bare_read;
    for (int round = 0; round < std::min(report.race().rounds, 7); ++round) {
      std::optional<Buffer> there;
      written.add(timed([&] { there.emplace(buffers.copy(source, stream, space)); }));
      bare_written.add(timed([&] { (void)bare.write(); }));
      read.add(timed([&] { Buffer const back = buffers.copy(*there, stream, memory); }));
      bare_read.add(timed([&] { (void)bare.read(); }));
    }
    print(report, "to", written, bare_written);
    print(report, "from", read, bare_read);
  }
  std::filesystem::remove_all(where);
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  earmark::measuring::Report report{argc, argv};
  if (report.wants("T4")) { earmark::bench::measure(report); }
}
