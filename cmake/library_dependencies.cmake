# What libcprof needs to be built (docs/design/0001-dependencies.md), beside the headers of fmt and protozero. The archive is taken
# where there is one: then every build tests the code that the static program ships, and that program is one more link of the
# same objects; and libcprof.so needs nothing but libc.
function(cprof_find_library target)
  cmake_parse_arguments(ARG "" "" "NAMES;PATHS;NEEDS" ${ARGN})
  set(archives ${ARG_NAMES})
  list(TRANSFORM archives REPLACE "(.+)" "lib\\1.a")
  find_library(${target}_LIBRARY NAMES ${archives} ${ARG_NAMES} PATHS ${ARG_PATHS} REQUIRED)
  add_library(dep::${target} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(dep::${target} INTERFACE ${${target}_LIBRARY} ${ARG_NEEDS})
endfunction()

find_package(Threads REQUIRED)
cprof_find_library(z NAMES z)
cprof_find_library(zstd NAMES zstd)
cprof_find_library(deflate NAMES deflate)
cprof_find_library(lzma NAMES lzma)
