# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# earmark::cccl: CCCL's headers as bundled with RMM, and the headers of CUDA's run time that they include. Headers only:
# nothing of CUDA is linked. Needs EARMARK_WHEELS.
if(NOT TARGET earmark::cccl)
  find_path(EARMARK_CCCL_INCLUDE cuda/memory_resource PATHS "${EARMARK_WHEELS}/librmm/include/rapids"
            REQUIRED NO_CACHE NO_DEFAULT_PATH DOC "CCCL's headers (wheel librmm-cu13)")
  find_path(EARMARK_CUDA_INCLUDE cuda_runtime_api.h PATHS "${EARMARK_WHEELS}/nvidia/cu13/include"
            REQUIRED NO_CACHE NO_DEFAULT_PATH DOC "Headers of CUDA's run time (wheel nvidia-cuda-runtime)")
  if(NOT EXISTS "${EARMARK_CUDA_INCLUDE}/crt/host_config.h")
    message(FATAL_ERROR "${EARMARK_CUDA_INCLUDE} lacks crt/host_config.h (wheel nvidia-cuda-crt): without it CCCL "
                        "hides its memory resources")
  endif()
  # Toolkits carry older CCCLs without what Earmark needs; a wrong one must not be found out by its compile errors.
  file(STRINGS "${EARMARK_CCCL_INCLUDE}/cuda/std/__cccl/version.h" earmark_cccl_version
       REGEX "#[ \t]*define[ \t]+CCCL_VERSION[ \t]+[0-9]+")
  string(REGEX REPLACE ".*CCCL_VERSION[ \t]+([0-9]+).*" "\\1" earmark_cccl_version "${earmark_cccl_version}")
  if(NOT earmark_cccl_version GREATER_EQUAL 3005000)
    message(FATAL_ERROR "${EARMARK_CCCL_INCLUDE} has CCCL '${earmark_cccl_version}'; 3005000 or newer is needed")
  endif()
  add_library(earmark::cccl INTERFACE IMPORTED)
  # A CUDA compiler brings run-time headers of its own version, which it must see, and a CCCL that may be older and must
  # not win: it may search its own folders before system folders, which an imported target's are, hence the plain -I.
  target_include_directories(earmark::cccl INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:${EARMARK_CCCL_INCLUDE}>" "$<$<COMPILE_LANGUAGE:CXX>:${EARMARK_CUDA_INCLUDE}>")
  target_compile_options(earmark::cccl INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-I${EARMARK_CCCL_INCLUDE}>")
endif()
