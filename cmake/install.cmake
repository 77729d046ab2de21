# What `cmake --install` puts where: the program with its man pages, completions and documents. Packages are made of it
# (tools/make_package.sh), so a file that is to be shipped gets its install() rule, here or where its target is, and what it
# is built by becomes a dependency of cprof_shipped.
include(GNUInstallDirs)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(share ${CMAKE_BINARY_DIR}/share)
file(GLOB page_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md ${CMAKE_SOURCE_DIR}/tools/completions/*)
add_custom_command(OUTPUT ${share}/made
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tools/gen_man.py $<TARGET_FILE:cprof> ${share}/man
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tools/gen_completions.py $<TARGET_FILE:cprof> ${share}/completions
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tools/gen_third_party.py ${CMAKE_BINARY_DIR} ${share}/third-party.txt
  COMMAND ${CMAKE_COMMAND} -E touch ${share}/made
  DEPENDS cprof ${page_sources} ${CMAKE_SOURCE_DIR}/tools/describe.py ${CMAKE_SOURCE_DIR}/tools/gen_man.py
    ${CMAKE_SOURCE_DIR}/tools/gen_completions.py ${CMAKE_SOURCE_DIR}/tools/gen_third_party.py ${CMAKE_SOURCE_DIR}/tools/licences.txt
  COMMENT "Man pages and completions" VERBATIM)
add_custom_target(cprof_shipped DEPENDS ${share}/made)

install(TARGETS cprof RUNTIME)
install(DIRECTORY ${share}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${share}/completions/cprof DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${share}/completions/_cprof DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${share}/completions/cprof.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md README.zh-CN.md CHANGELOG.md LICENSE NOTICE ${share}/third-party.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})
# What a user reads; how cprof is built inside stays with the source.
file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
list(FILTER documents EXCLUDE REGEX "/(architecture|options|page-api|page-payload|promises|style|testing|verified)\\.md$")
install(FILES ${documents} docs/page.png DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY docs/formats DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
