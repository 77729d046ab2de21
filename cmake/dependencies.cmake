# The libraries of docs/design/0001-dependencies.md, from the distribution's packages.
if(CPROF_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
endif()

function(cprof_find_library target)
  cmake_parse_arguments(ARG "" "" "NAMES;PATHS;NEEDS" ${ARGN})
  find_library(${target}_LIBRARY NAMES ${ARG_NAMES} PATHS ${ARG_PATHS} REQUIRED)
  add_library(dep::${target} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(dep::${target} INTERFACE ${${target}_LIBRARY} ${ARG_NEEDS})
endfunction()

find_package(Threads REQUIRED)
cprof_find_library(z NAMES z)
cprof_find_library(zstd NAMES zstd)
cprof_find_library(deflate NAMES deflate)
cprof_find_library(lzma NAMES lzma)
cprof_find_library(bz2 NAMES bz2)
cprof_find_library(elf NAMES elf NEEDS dep::z)
cprof_find_library(dw NAMES dw NEEDS dep::elf dep::z dep::lzma dep::bz2 ${CMAKE_DL_LIBS})
cprof_find_library(demangle NAMES LLVMDemangle
  PATHS /usr/lib/llvm-19/lib /usr/lib/llvm-18/lib /usr/lib/llvm-17/lib /usr/lib/llvm-16/lib)
find_path(LLVM_DEMANGLE_INCLUDE llvm/Demangle/Demangle.h
  PATHS /usr/lib/llvm-19/include /usr/lib/llvm-18/include /usr/lib/llvm-17/include /usr/lib/llvm-16/include REQUIRED)
target_include_directories(dep::demangle SYSTEM INTERFACE ${LLVM_DEMANGLE_INCLUDE})
