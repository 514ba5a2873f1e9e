# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# The CUDA language, for EARMARK_CUDA. The compiler is the first of: CMAKE_CUDA_COMPILER, the environment's CUDACXX, nvcc
# on the path, nvcc from the wheels in requirements-cuda.txt.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(earmark_nvcc nvcc PATHS "${EARMARK_WHEELS}/nvidia/cu13/bin" NO_CACHE)
  if(NOT earmark_nvcc)
    message(FATAL_ERROR "There is no CUDA compiler: put nvcc on the path, set CMAKE_CUDA_COMPILER, or install the wheels "
                        "in requirements-cuda.txt, as './dev build cuda' does")
  endif()
  set(CMAKE_CUDA_COMPILER "${earmark_nvcc}" CACHE FILEPATH "CUDA compiler" FORCE)
endif()
set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to compile for: 90 is Hopper")
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that nvcc has it
endif()
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_CUDA_COMPILER_VERSION}; RMM's wheel needs 13.0 or newer")
endif()
if(EARMARK_CCACHE AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${EARMARK_CCACHE}")
endif()

# What a unit compiled by nvcc is judged by: nvcc's own warnings, and the host compiler's.
function(earmark_cuda_compile_settings target)
  target_compile_options(${target} PRIVATE -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow)
  if(EARMARK_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror=all-warnings -Xcompiler=-Werror)
  endif()
endfunction()
