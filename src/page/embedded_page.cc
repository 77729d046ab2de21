#include "page/embedded_page.h"

#include <cstddef>

asm(R"(
.section .rodata.cprof_page, "a"
.balign 16
cprof_page_begin:
.incbin ")" CPROF_PAGE_FILE R"("
cprof_page_end:
.byte 0
.previous
)");

extern "C" const char cprof_page_begin[], cprof_page_end[];

namespace cprof::page {

std::string_view embedded_page() { return {cprof_page_begin, static_cast<size_t>(cprof_page_end - cprof_page_begin)}; }

}  // namespace cprof::page
