// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <rapidsmpf/memory/buffer_resource.hpp>
#include <rapidsmpf/utils/string.hpp>
#include <rmm/cuda_stream.hpp>
#include <string>

#include "earmark/core/bytes.hpp"
#include "memory/rapidsmpf_peer.hpp"
#include "memory/upstreams.hpp"

namespace {

thread_local bool texts_left_empty = false;

using Format = std::string (*)(double, int, rapidsmpf::TrimZeroFraction);

Format shipped_format() {
  static auto const found =
      reinterpret_cast<Format>(dlsym(RTLD_NEXT, "_ZN9rapidsmpf13format_nbytesB5cxx11EdiNS_16TrimZeroFractionE"));
  if (found == nullptr) { std::abort(); }
  return found;
}

}  // namespace

// Two functions of the libraries are replaced by this program's own, which come first where the libraries call them.
namespace rapidsmpf {

// Called twice per release of a reservation, for the text of an error that is thrown almost never.
[[gnu::visibility("default")]] std::string format_nbytes(double bytes, int decimals, TrimZeroFraction trim) {
  return texts_left_empty ? std::string{} : shipped_format()(bytes, decimals, trim);
}

}  // namespace rapidsmpf

namespace rmm {

// RapidsMPF makes streams when it starts, which nothing here uses: without a device they are made of nothing.
[[gnu::visibility("default")]] cuda_stream::cuda_stream(flags kind)
    : stream_{new cudaStream_t{}, [](cudaStream_t* stream) {
                if (*stream != nullptr) { (void)cudaStreamDestroy(*stream); }
                delete stream;
              }} {
  (void)cudaStreamCreateWithFlags(stream_.get(), static_cast<unsigned>(kind));
}

}  // namespace rmm

namespace earmark::bench {
namespace {

std::shared_ptr<rapidsmpf::BufferResource> make_buffer_resource() {
  return rapidsmpf::BufferResource::create(AnyResource{NoUpstream{}}, rapidsmpf::PinnedMemoryDisabled,
                                           {{rapidsmpf::MemoryType::DEVICE, std::int64_t{1} << 50}}, std::nullopt);
}

void reserve_and_drop(rapidsmpf::BufferResource& resource, std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i) {
    auto const reserved = resource.reserve(rapidsmpf::MemoryType::DEVICE, 1_MiB, rapidsmpf::AllowOverbooking::NO);
    if (reserved.first.size() != 1_MiB) { std::abort(); }
  }
}

}  // namespace

void enter_rapidsmpf_pairs(measuring::Race& race) {
  race.enter(rapidsmpf_device_mr, [resource = make_buffer_resource()](int thread, std::int64_t times) {
    allocate_and_free(resource->device_mr(), stream_of(thread), times);
  });
}

void enter_rapidsmpf_reserves(measuring::Race& race) {
  auto const resource = make_buffer_resource();
  for (bool const stubbed : {false, true}) {
    race.enter(stubbed ? rapidsmpf_reserve_stubbed : rapidsmpf_reserve, [resource, stubbed](int, std::int64_t times) {
      texts_left_empty = stubbed;
      reserve_and_drop(*resource, times);
      texts_left_empty = false;
    });
  }
}

}  // namespace earmark::bench
