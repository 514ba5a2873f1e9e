# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# Peers that benchmarks measure beside Earmark and that only a request installs (`--peers` of ./dev's verbs): targets that
# exist where the wheels in requirements-peers.txt are. Never linked to anything but benchmarks.
if(EXISTS "${EARMARK_WHEELS}/librapidsmpf" AND EXISTS "${EARMARK_WHEELS}/libucxx" AND EXISTS "${EARMARK_WHEELS}/libucx")
  set(rapidsmpf "${EARMARK_WHEELS}/librapidsmpf/lib64/librapidsmpf.so")
  set(loaded "${EARMARK_WHEELS}/libucxx/lib64/libucxx.so")
  foreach(part IN ITEMS ucp uct ucs ucm)
    list(APPEND loaded "${EARMARK_WHEELS}/libucx/lib/lib${part}.so.0")
  endforeach()

  # They carry no paths to each other: the program itself names them all, and keeps those that it does not call.
  set(names "")
  foreach(library IN LISTS loaded)
    cmake_path(GET library STEM part)
    add_library(earmark_peer_${part} SHARED IMPORTED)  # for its folder in the program's search path
    set_target_properties(earmark_peer_${part} PROPERTIES IMPORTED_LOCATION "${library}")
    list(APPEND names earmark_peer_${part} "-Wl,--push-state,--no-as-needed,${library},--pop-state")
  endforeach()
  add_library(earmark::rapidsmpf SHARED IMPORTED)
  set_target_properties(earmark::rapidsmpf PROPERTIES
    IMPORTED_LOCATION "${rapidsmpf}"
    INTERFACE_INCLUDE_DIRECTORIES
      "${EARMARK_WHEELS}/librapidsmpf/include;${EARMARK_WHEELS}/libucxx/include;${EARMARK_WHEELS}/libucx/include"
    INTERFACE_LINK_LIBRARIES "earmark::rmm;earmark::cudart;${names}")
  earmark_pack_libraries_for_gpu(gpu_peers "${rapidsmpf}" ${loaded} "${EARMARK_RMM_LIBRARY}"
                                 "${EARMARK_RAPIDS_LOGGER_LIBRARY}")
endif()
