# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# Finds the foreign parts. CCCL, RMM and Arrow come from Python wheels, which carry headers and libraries; the rest from
# the system's packages. The installed package uses the same files in cmake/foreign/, so a consumer finds the same parts.
if(NOT IS_DIRECTORY "${EARMARK_WHEELS}")
  set(earmark_python "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  if(EXISTS "${earmark_python}")
    execute_process(COMMAND "${earmark_python}" -c "import sysconfig; print(sysconfig.get_path('purelib'))"
                    OUTPUT_VARIABLE earmark_wheels OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(EARMARK_WHEELS "${earmark_wheels}" CACHE PATH
      "Folder with the unpacked wheels librmm-cu13, rapids-logger, nvidia-cuda-runtime, nvidia-cuda-crt, pyarrow" FORCE)
endif()
if(NOT IS_DIRECTORY "${EARMARK_WHEELS}")
  message(FATAL_ERROR "The wheels in requirements.txt are missing: run './dev setup', or set EARMARK_WHEELS")
endif()

set(EARMARK_FOREIGN_PARTS cccl cudart rmm arrow parquet uring)
foreach(part IN LISTS EARMARK_FOREIGN_PARTS)
  include("${CMAKE_CURRENT_LIST_DIR}/foreign/${part}.cmake")
endforeach()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(EARMARK_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
else()
  find_package(GTest QUIET)  # for the conformance suites, which are left out without it
endif()
if(EARMARK_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
# The roof's.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
