# SPDX-License-Identifier: Apache-2.0
# ballast_bpf(name SOURCE): compiles a kernel program and makes the C skeleton that carries it:
# name.skel.h with struct NameSkeleton, a system include of the target ballast_bpf_name.

find_program(BPF_CLANG clang-19 REQUIRED)
find_program(BPFTOOL bpftool PATHS /usr/sbin /sbin REQUIRED)
find_library(BPF_LIBRARY bpf REQUIRED)
# The kernel's headers, which clang does not look for when the target is bpf.
set(BPF_SYSTEM_INCLUDE /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
set(BPF_BUILD ${CMAKE_BINARY_DIR}/skeletons)
file(MAKE_DIRECTORY ${BPF_BUILD})
add_custom_target(skeletons)

function(ballast_bpf name source)
  set(object ${BPF_BUILD}/${name}.bpf.o)
  set(skeleton ${BPF_BUILD}/${name}.skel.h)
  string(SUBSTRING ${name} 0 1 initial)
  string(SUBSTRING ${name} 1 -1 rest)
  string(TOUPPER ${initial} initial)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${BPF_CLANG} -std=gnu11 -O2 -g -target bpf -mcpu=v3
      -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -Wno-address-of-packed-member
      -iquote ${CMAKE_SOURCE_DIR}/src -iquote ${CMAKE_SOURCE_DIR}
      -isystem ${BPF_SYSTEM_INCLUDE} -fdebug-prefix-map=${CMAKE_SOURCE_DIR}=.
      -MD -MF ${object}.d -MT ${object}
      -c ${CMAKE_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${CMAKE_SOURCE_DIR}/${source}
    DEPFILE ${object}.d
    COMMENT "Compiling ${source} for the kernel"
    VERBATIM)
  set(generate "\"${BPFTOOL}\" gen skeleton ${object} name ${initial}${rest}Skeleton")
  add_custom_command(
    OUTPUT ${skeleton}
    COMMAND sh -c "${generate} >${skeleton}.new"
    COMMAND ${CMAKE_COMMAND} -E rename ${skeleton}.new ${skeleton}
    DEPENDS ${object}
    VERBATIM)
  add_custom_target(skeleton_${name} DEPENDS ${skeleton})
  add_dependencies(skeletons skeleton_${name})
  add_library(ballast_bpf_${name} INTERFACE)
  target_include_directories(ballast_bpf_${name} SYSTEM INTERFACE ${BPF_BUILD})
  target_link_libraries(ballast_bpf_${name} INTERFACE ${BPF_LIBRARY})
  add_dependencies(ballast_bpf_${name} skeleton_${name})
endfunction()
