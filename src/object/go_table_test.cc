#include "object/go_table.h"

#include <gtest/gtest.h>

#include <random>

#include "object/go_program_for_tests.h"

namespace cprof::object {
namespace {

std::shared_ptr<ElfFile> open_program(const GoProgram& program) {
  return ElfFile::from_memory(program.build(), "stripped").value();
}

TEST(GoTable, FunctionsOfEveryVersionWhereverTheTextBegins) {
  using TextBy = GoProgram::TextBy;
  for (const GoProgram& program :
       {GoProgram{0xfffffffb, TextBy::kSection}, GoProgram{0xfffffffa, TextBy::kSection},
        GoProgram{0xfffffff0, TextBy::kHeader}, GoProgram{0xfffffff1, TextBy::kPointer},
        GoProgram{0xfffffff1, TextBy::kRelocation}, GoProgram{0xfffffff1, TextBy::kSection}}) {
    auto file = open_program(program);
    auto symbols = file->symbols();
    ASSERT_TRUE(symbols) << symbols.error().message;
    file->drop_cached_data();  // names stay valid
    ASSERT_EQ(symbols->size(), 3u) << std::hex << program.magic;
    EXPECT_EQ((*symbols)[0].name, "main.main");
    EXPECT_EQ((*symbols)[0].address, GoProgram::kText);
    EXPECT_EQ((*symbols)[1].name, "main.(*T).work");
    EXPECT_EQ((*symbols)[1].address, GoProgram::kWork);
    EXPECT_EQ((*symbols)[1].size, GoProgram::kGoexit - GoProgram::kWork);
    EXPECT_EQ((*symbols)[2].name, "runtime.goexit");
  }
}

TEST(GoTable, DepthsOfAFrame) {
  for (uint32_t magic : {0xfffffffau, 0xfffffff0u, 0xfffffff1u}) {
    auto table = read_go_table(*open_program({magic, GoProgram::TextBy::kSection}));
    ASSERT_TRUE(table && *table);
    const auto& functions = (*table)->functions;
    EXPECT_EQ(functions[0].depths, 0u) << "not told";
    EXPECT_TRUE(functions[2].is_root) << std::hex << magic;
    std::vector<std::tuple<uint64_t, uint64_t, int32_t>> seen;
    EXPECT_TRUE(for_each_go_depth(**table, functions[1], [&](uint64_t start, uint64_t end, int32_t depth) {
      seen.emplace_back(start, end, depth);
    }));
    EXPECT_EQ(seen, (decltype(seen){{GoProgram::kWork, GoProgram::kWorkBody, 0},
                                    {GoProgram::kWorkBody, GoProgram::kWorkTail, 24},
                                    {GoProgram::kWorkTail, GoProgram::kWorkEnd, 0}}));
  }
}

TEST(GoTable, OtherVersionsAreNoGoProgram) {
  auto table = read_go_table(*open_program({0xfffffff7, GoProgram::TextBy::kSection}));
  ASSERT_TRUE(table);
  EXPECT_FALSE(*table);
}

TEST(GoTable, SpoiltTablesNeverHurt) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; i++) {
    const uint32_t magic = std::array{0xfffffffbu, 0xfffffffau, 0xfffffff1u}[static_cast<size_t>(i) % 3];
    ElfBuilder::Bytes bytes = GoProgram{magic, GoProgram::TextBy::kPointer}.build();
    for (int n = 0; n < 4; n++) bytes[64 + random() % (bytes.size() - 64)] = static_cast<std::byte>(random());
    auto file = ElfFile::from_memory(std::move(bytes), "spoilt");
    if (!file) continue;
    (void)(*file)->symbols();
    auto table = read_go_table(**file);
    if (!table || !*table) continue;
    for (const GoFunction& function : (*table)->functions)
      (void)for_each_go_depth(**table, function, [&](uint64_t start, uint64_t end, int32_t) {
        EXPECT_TRUE(start < end && end <= function.end);
      });
  }
}

}  // namespace
}  // namespace cprof::object
