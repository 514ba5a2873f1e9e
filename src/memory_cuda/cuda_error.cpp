// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory_cuda/cuda_error.hpp"

#include <cuda_runtime_api.h>

#include <string>

namespace earmark {

CudaError::CudaError(char const* call, cudaError_t code)
    : rmm::cuda_error(std::string{call} + ": " + cudaGetErrorName(code) + ": " + cudaGetErrorString(code)),
      code_(code) {
  fields_.tier = FixedText<15>{"device"};
}

}  // namespace earmark
