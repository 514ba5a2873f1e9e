# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# earmark::rmm: RMM from its wheel. An imported target of our own: RMM's CMake package asks for a newer CMake than the
# distributions have. Needs EARMARK_WHEELS.
include("${CMAKE_CURRENT_LIST_DIR}/cccl.cmake")
if(NOT TARGET earmark::rmm)
  find_library(EARMARK_RMM_LIBRARY rmm PATHS "${EARMARK_WHEELS}/librmm/lib64"
               REQUIRED NO_CACHE NO_DEFAULT_PATH DOC "librmm.so (wheel librmm-cu13)")
  find_library(EARMARK_RAPIDS_LOGGER_LIBRARY rapids_logger PATHS "${EARMARK_WHEELS}/rapids_logger/lib64"
               REQUIRED NO_CACHE NO_DEFAULT_PATH DOC "librapids_logger.so (wheel rapids-logger)")
  add_library(earmark::rapids_logger SHARED IMPORTED)
  set_target_properties(earmark::rapids_logger PROPERTIES
    IMPORTED_LOCATION "${EARMARK_RAPIDS_LOGGER_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${EARMARK_WHEELS}/rapids_logger/include"
    # librmm.so needs this library and has no path to it, so the program itself must: linkers that drop what the program
    # does not call would leave it out.
    INTERFACE_LINK_LIBRARIES "-Wl,--push-state,--no-as-needed,${EARMARK_RAPIDS_LOGGER_LIBRARY},--pop-state")
  add_library(earmark::rmm SHARED IMPORTED)
  set_target_properties(earmark::rmm PROPERTIES
    IMPORTED_LOCATION "${EARMARK_RMM_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${EARMARK_WHEELS}/librmm/include"
    INTERFACE_LINK_LIBRARIES "earmark::cccl;earmark::rapids_logger")
endif()
