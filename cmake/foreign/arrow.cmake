# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# earmark::arrow: Arrow C++ from the pyarrow wheel, which has headers and libraries but no CMake package. A program that
# links it and is loaded beside pyarrow shares one libarrow with it. Needs EARMARK_WHEELS.
set(EARMARK_ARROW_SO 2600)  # changes with Arrow's major version: see requirements.txt
if(NOT TARGET earmark::arrow)
  find_library(EARMARK_ARROW_LIBRARY NAMES libarrow.so.${EARMARK_ARROW_SO} PATHS "${EARMARK_WHEELS}/pyarrow"
               REQUIRED NO_CACHE NO_DEFAULT_PATH DOC "libarrow (wheel pyarrow)")
  add_library(earmark::arrow SHARED IMPORTED)
  set_target_properties(earmark::arrow PROPERTIES
    IMPORTED_LOCATION "${EARMARK_ARROW_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${EARMARK_WHEELS}/pyarrow/include")
endif()
