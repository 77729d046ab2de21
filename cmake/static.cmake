# cprof_static: the same program linked with no shared library at all, for machines where nothing is installed. It reuses
# the objects of this build; `./dev static` builds it, puts it at build/static/cprof and proves it in an empty root.
get_target_property(sources cprof SOURCES)
get_target_property(libraries cprof LINK_LIBRARIES)
list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/src/)
add_executable(cprof_static EXCLUDE_FROM_ALL ${sources})
set_target_properties(cprof_static PROPERTIES
  OUTPUT_NAME cprof RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static POSITION_INDEPENDENT_CODE OFF)
target_link_libraries(cprof_static PRIVATE ${libraries})
target_link_options(cprof_static PRIVATE -static -no-pie)
