# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# What `./dev gpu-pack` carries to a machine with a GPU, where nothing is installed: programs, as statically linked as
# can be, and beside them the shared libraries that they load. A payload is an install component: `gpu`, and `gpu_peers`
# for benchmarks beside peers. Target earmark_gpu_programs builds all of them.
add_custom_target(earmark_gpu_programs)

# Puts a program into FOLDER (tests or bench) of a payload.
function(earmark_pack_for_gpu target folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PAYLOAD" "")
  if(NOT arg_PAYLOAD)
    set(arg_PAYLOAD gpu)
  endif()
  add_dependencies(earmark_gpu_programs ${target})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib")
  install(TARGETS ${target} RUNTIME DESTINATION ${folder} COMPONENT ${arg_PAYLOAD} EXCLUDE_FROM_ALL)
endfunction()

# Puts shared libraries into a payload, under the names that programs look for.
function(earmark_pack_libraries_for_gpu payload)
  foreach(library IN LISTS ARGN)
    file(REAL_PATH "${library}" file)
    cmake_path(GET library FILENAME name)
    install(PROGRAMS "${file}" DESTINATION lib RENAME "${name}" COMPONENT ${payload} EXCLUDE_FROM_ALL)
  endforeach()
endfunction()

earmark_pack_libraries_for_gpu(gpu "${EARMARK_RMM_LIBRARY}" "${EARMARK_RAPIDS_LOGGER_LIBRARY}")
