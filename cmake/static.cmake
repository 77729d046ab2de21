# cprof_static: the same program linked with no shared library at all, for machines where nothing is installed. It reuses
# the objects of this build; `./dev static` builds it, puts it at build/static/cprof and proves it in an empty root.
add_executable(cprof_static EXCLUDE_FROM_ALL src/main.cc)
set_target_properties(cprof_static PROPERTIES
  OUTPUT_NAME cprof RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static POSITION_INDEPENDENT_CODE OFF)
target_link_libraries(cprof_static PRIVATE cprof_cli)
target_link_options(cprof_static PRIVATE -static -no-pie)
