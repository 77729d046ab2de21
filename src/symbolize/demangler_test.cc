#include <gtest/gtest.h>
#include <llvm/Demangle/Demangle.h>
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "symbolize/itanium.h"
#include "symbolize/symbolizer.h"

namespace cprof::symbolize {
namespace {

std::string full(std::string_view name) { return std::string(Demangler(DemangleStyle::kFull).demangle(name)); }
std::string brief(std::string_view name) { return std::string(Demangler(DemangleStyle::kShort).demangle(name)); }

std::string numbered(std::string_view name) { return std::to_string(name.size()) + std::string(name); }

// verifies: A9
TEST(Demangler, CppNames) {
  EXPECT_EQ(full("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int>>::push_back(int const&)");
  EXPECT_EQ(full("_Z1fv"), "f()");
  EXPECT_EQ(full("main"), "main");
  EXPECT_EQ(full("_Znot_a_name"), "_Znot_a_name");
  EXPECT_EQ(full(""), "");
}

TEST(Demangler, CloneAndPltMarks) {
  EXPECT_EQ(full("_ZN3app4workEi.isra.0.cold"), "app::work(int) [clone .isra.0] [clone .cold]");
  EXPECT_EQ(full("_ZN3app4workEi@plt"), "app::work(int)@plt");
  EXPECT_EQ(full("memcpy@plt"), "memcpy@plt");
  EXPECT_EQ(brief("_ZN3app4workEi.cold"), "app::work");
}

TEST(Demangler, ShortDropsParametersAndTemplateArguments) {
  EXPECT_EQ(brief("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector<>::push_back");
  EXPECT_EQ(brief("_Z3maxIiET_S0_S0_"), "max<>");  // no return type either
  EXPECT_EQ(brief("_ZNK3FoolsERKS_"), "Foo::operator<<");
  EXPECT_EQ(brief("_ZNK3FooltIiEEbT_"), "Foo::operator<<>");
  EXPECT_EQ(brief("_ZN3FooclEv"), "Foo::operator()");
  EXPECT_EQ(brief("_ZN12_GLOBAL__N_14workEi"), "(anonymous namespace)::work");
  EXPECT_EQ(brief("_ZZ4mainENKUliE_clEi"), "main::'lambda'::operator()");
}

TEST(Demangler, ShortenKeepsRustsQualifiedPaths) {
  EXPECT_EQ(shorten_name("<alloc::vec::Vec<T> as core::ops::Drop>::drop"), "<alloc::vec::Vec<> as core::ops::Drop>::drop");
}

TEST(Demangler, StyleNoneAndTheCache) {
  Demangler none(DemangleStyle::kNone);
  EXPECT_EQ(none.demangle("_Z1fv"), "_Z1fv");
  Demangler demangler(DemangleStyle::kFull);
  std::string_view first = demangler.demangle(std::string("_Z1fv"));
  EXPECT_EQ(first.data(), demangler.demangle("_Z1fv").data());
}

// verifies: A9
TEST(Demangler, RustLegacy) {
  EXPECT_EQ(full("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(full("_ZN4core3fmt5write17h0123456789abcdefE.llvm.1234"), "core::fmt::write");
  EXPECT_EQ(full("_ZN52_$LT$app..Job$LT$T$GT$$u20$as$u20$app..pool..Run$GT$3run17h00112233445566ffE"),
            "<app::Job<T> as app::pool::Run>::run");
  EXPECT_EQ(full("_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h00112233445566ffE"), "app::main::{{closure}}");
  EXPECT_EQ(full("_ZN3app17hello_is_no_hash_E"), "app::hello_is_no_hash_");
}

// verifies: A9
TEST(Demangler, RustV0AgreesWithLlvm) {
  const char* names[] = {
      "_RNvCs1234_3app4main",
      "_RNvMs_NtCs1234_3app4poolNtB4_3Job3run",
      "_RNvXs0_NtCs1234_3app4poolINtB5_3JobTjjEENtB5_3Run3run",
      "_RNCNvCs1234_3app4main0B3_",
      "_RNCNvCs1234_3app4mains_0B3_",
      "_RINvNtCs1234_3app3mem4swapRShQAhj10_FUKCmEuE",
      "_RINvCs1234_3app3fooKj1f_Kb1_Kc41_Kln5_E",
      "_RINvCs1234_3app3dynDNtNtCs2_4core3fmt5DebugEL_E",
      "_RINvCs1234_3app3dynDINtNtCs2_4core3ops2FnTmEEp6OutputyEL_E",
      "_RINvCs1234_3app3forFG_RL0_hEuE",
      "_RNvNtCs1234_3appu8gdel_5qa6escher4gdel",
      "_RNvYNtCs1234_3app3JobNtB4_3Run3run",
      "_RNSNvCs1234_3app4main6vtableB3_",
      "_RINvCs1234_3app1pPhOhzE",
  };
  for (const char* name : names) {
    char* expected = llvm::rustDemangle(name);
    EXPECT_EQ(full(name), expected ? expected : name) << name;
    std::free(expected);
  }
}

TEST(Demangler, RustV0Short) {
  EXPECT_EQ(brief("_RNvXs0_NtCs1234_3app4poolINtB5_3JobTjjEENtB5_3Run3run"), "<app::pool::Job as app::pool::Run>::run");
  EXPECT_EQ(brief("_RINvNtCs1234_3app3mem4swaphE"), "app::mem::swap");
}

TEST(Demangler, LongRustV0Names) {
  // app::run::<Wrap<Wrap<...<u8>>>> with long names: over 1,000 characters.
  std::string name = "_RINvCs1234_3app3run", close = "E", expected = "app::run::<", tail = ">";
  for (int i = 0; i < 40; i++) {
    std::string type = "VeryLongWrapperType" + std::to_string(i);
    name += "INtCs1234_3app" + numbered(type), close += "E";
    expected += "app::" + type + "<", tail += ">";
  }
  name += "h" + close;
  ASSERT_GT(name.size(), 1000u);
  EXPECT_EQ(full(name), expected + "u8" + tail);
}

TEST(Demangler, LongCppNames) {
  std::string name = "_Z3runI", close = "EvT_", expected = "void run<";
  std::string tail;
  for (int i = 0; i < 80; i++) {
    std::string type = "SomeRatherLongTemplate" + std::to_string(i);
    name += numbered(type) + "I";
    close = "E" + close;
    expected += type + "<", tail += ">";
  }
  std::string type_text = expected.substr(9) + "int" + tail;
  EXPECT_EQ(full(name + "i" + close), "void run<" + type_text + ">(" + type_text + ")");
}

// Each comes back raw (or, when it is cheap after all, demangled), fast and small.
long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::chrono::nanoseconds cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void expect_bounded(const std::string& name, bool raw = true) {
  Demangler demangler(DemangleStyle::kFull);
  [[maybe_unused]] long before = peak_kilobytes();
  std::chrono::nanoseconds start = cpu_time();  // the machine may be busy with other things
  std::string_view result = demangler.demangle(name);
  std::chrono::nanoseconds took = cpu_time() - start;
#ifdef CPROF_SANITIZED
  took /= 20;
#else
  EXPECT_LT(peak_kilobytes() - before, 32 << 10) << name.substr(0, 60);
#endif
  EXPECT_LT(std::chrono::duration_cast<std::chrono::milliseconds>(took).count(), 50) << name.substr(0, 60);
  if (raw) {
    EXPECT_EQ(result.size(), name.size());  // not EXPECT_EQ of the texts: a failure would print megabytes
    EXPECT_TRUE(result == name) << name.substr(0, 60);
  }
}

std::string repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; i++) out += text;
  return out;
}

std::string seq_id(int n) {  // S_, S0_, ...
  if (n == 0) return "S_";
  std::string digits;
  for (int v = n - 1;; v /= 36) {
    digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[v % 36]);
    if (v < 36) break;
  }
  return "S" + digits + "_";
}

TEST(DemanglerBudget, SubstitutionsThatDoubleEachTime) {
  // f(A, B<A,A>, B<that,that>, ...): the text doubles with each parameter.
  std::string name = "_Z1f1A1BIS_S_E";
  for (int i = 0; i < 60; i++) name += seq_id(1) + "I" + seq_id(2 + i) + seq_id(2 + i) + "E";
  expect_bounded(name);
}

TEST(DemanglerBudget, DoublingFunctionTypes) {
  std::string name = "_Z1fPFvvE";
  for (int i = 0; i < 80; i++) name += "PFv" + seq_id(2 * i + 1) + seq_id(2 * i + 1) + seq_id(2 * i) + "E";
  expect_bounded(name);
}

TEST(DemanglerBudget, DeepNesting) {
  expect_bounded("_Z1f" + repeat("P", 60'000) + "i");
  expect_bounded("_Z1f" + repeat("1AI", 20'000) + "i" + repeat("E", 20'000));
  expect_bounded("_Z1fIXsz" + repeat("ng", 30'000) + "Li1EEEvv");
  expect_bounded("_Z1f" + repeat("DT", 30'000));
  expect_bounded("_Z" + repeat("Z", 60'000));
  expect_bounded("_ZN" + repeat("cv", 30'000) + "iEv");
  expect_bounded("_Z" + repeat("TW", 30'000));
  expect_bounded("_Z1f" + repeat("Dv1_", 15'000) + "i");
  expect_bounded("_Z1f" + repeat("M1A", 20'000) + "i");
  expect_bounded("_Z1f" + repeat("U1A", 20'000) + "i");
  expect_bounded("_Z1fIL_Z" + repeat("1fIL_Z", 10'000));
  expect_bounded("_ZN1A" + repeat("B1a", 20'000) + "Ev", false);
  expect_bounded("_ZUl" + repeat("TtTy", 10'000) + "E_");
  expect_bounded("_ZUl" + repeat("Tt", 30'000) + "E_");
  expect_bounded("_ZDC" + repeat("1a", 30'000) + "E", false);
}

TEST(DemanglerBudget, ChainsOfSubstitutions) {
  std::string name = "_Z1fPi";
  for (int i = 0; i < 12'000; i++) name += "P" + seq_id(i);
  expect_bounded(name);
}

TEST(DemanglerBudget, PacksOfPacks) {
  // f<J...>(Dp T_, ...): expansions in expansions.
  std::string name = "_Z1fIJ" + repeat("i", 3000) + "EEv";
  for (int i = 0; i < 200; i++) name += "Dp1AIDp1BIDpT_EE";
  expect_bounded(name, false);
}

TEST(DemanglerBudget, MalformedLambdaSoup) {
  std::string name = "_ZUlzjjlZZL1zStUlSt7j_Z3kj";
  for (int i = 0; i < 200; i++) name += "IIjIjL1vfIIEEEjzjjfjzSt7j_Z3kjIIjfjzL4t3kjIIjfjtUlSt7j_Z3kj";
  expect_bounded(name);
}

TEST(DemanglerBudget, ForwardReferencesInACycle) {
  expect_bounded("_ZN1AcvT_IT_EEv", false);
  expect_bounded("_ZN1Acv1BIT_T_T_EI" + repeat("S_", 100) + "EEv", false);
}

TEST(DemanglerBudget, RustBackReferencesThatDouble) {
  // Tuples of two back references to the one before.
  auto base62 = [](size_t n) {
    if (n == 0) return std::string("_");
    std::string digits;
    for (size_t v = n - 1;; v /= 62) {
      digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[v % 62]);
      if (v < 62) break;
    }
    return digits + "_";
  };
  std::string body = "INvCs1_3app1f";
  size_t previous = body.size();
  body += "ThhE";
  for (int i = 0; i < 60; i++) {
    size_t here = body.size();
    body += "TB" + base62(previous) + "B" + base62(previous) + "E";
    previous = here;
  }
  expect_bounded("_R" + body + "E");
  expect_bounded("_RINvCs1_3app1f" + repeat("R", 60'000) + "hE");
  expect_bounded("_RINvCs1_3app1fB" + base62(13) + "E");
}

TEST(DemanglerBudget, OverlongNamesComeBackRaw) { expect_bounded("_Z" + numbered(std::string(70'000, 'a')) + "v"); }

}  // namespace
}  // namespace cprof::symbolize
