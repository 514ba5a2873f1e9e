# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# earmark::cudart: CUDA's run time as a static library, from the wheel that has its headers; the target exists where the
# library was found. It finds the driver when it is first called, so programs that link it start without one. Needs
# EARMARK_WHEELS.
include("${CMAKE_CURRENT_LIST_DIR}/cccl.cmake")
if(NOT TARGET earmark::cudart)
  find_library(EARMARK_CUDART_LIBRARY NAMES libcudart_static.a PATHS "${EARMARK_WHEELS}/nvidia/cu13/lib"
               NO_CACHE NO_DEFAULT_PATH DOC "CUDA's run time (wheel nvidia-cuda-runtime)")
  if(EARMARK_CUDART_LIBRARY)
    find_package(Threads REQUIRED)
    add_library(earmark::cudart INTERFACE IMPORTED)
    # A program with CUDA units is linked with the run time of their compiler, and must not have two.
    target_link_libraries(earmark::cudart INTERFACE earmark::cccl
      "$<$<NOT:$<LINK_LANGUAGE:CUDA>>:${EARMARK_CUDART_LIBRARY}>" Threads::Threads ${CMAKE_DL_LIBS} rt)
  endif()
endif()
