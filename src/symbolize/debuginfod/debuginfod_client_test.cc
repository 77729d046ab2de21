#include "symbolize/debuginfod/debuginfod_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "object/elf_builder.h"
#include "symbolize/debuginfod/loopback_server.h"

namespace cprof::symbolize {
namespace {

using namespace std::chrono_literals;
using Connection = LoopbackServer::Connection;

const std::string kId = "0123456789abcdefghij", kHex = object::to_hex(std::as_bytes(std::span(kId)));

std::string elf_with(std::string_view build_id) {
  object::ElfBuilder builder;
  builder.add_build_id(build_id);
  const auto bytes = builder.build();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string chunk(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

class Debuginfod : public testing::Test {
 protected:
  Debuginfod() {
    char pattern[] = "/tmp/cprof-debuginfod-XXXXXX";
    cache_ = mkdtemp(pattern);
  }
  ~Debuginfod() override { std::filesystem::remove_all(cache_); }

  // Short enough for a test, long enough for a busy machine where nothing has to be waited for.
  DebuginfodOptions options(std::vector<std::string> servers) const {
    DebuginfodOptions options{.servers = std::move(servers), .cache_directory = cache_, .limits = {}, .progress = {}};
    options.limits = {.connect = 5s, .first_byte = patience, .window = patience, .bytes_per_window = 1 << 10, .max_bytes = 1 << 20, .max_redirections = 4};
    return options;
  }
  std::shared_ptr<object::ElfFile> find(DebuginfodClient& client, const std::string& hex = kHex) {
    return client.find(DebuginfodKind::kDebugInfo, hex, "libx.so", losses);
  }
  // The first example of a loss, "" when there is none.
  std::string example(std::string_view name) const {
    auto entry = losses.entries().find(name);
    return entry == losses.entries().end() ? "" : entry->second.example;
  }
  // What a client of its own makes of a server that gives this answer: given up, unusable, absent or found; with the reason.
  std::string outcome(LoopbackServer::Answer answer) {
    LoopbackServer server(std::move(answer));
    DebuginfodClient client(options({server.url()}));
    losses = {};
    const auto file = find(client);
    EXPECT_EQ(files_kept(), file ? 1u : 0u);
    if (file) return "found";
    for (std::string_view name : {"debuginfod_given_up", "debuginfod_unusable"})
      if (const std::string why = example(name); !why.empty())
        return std::string(name.substr(11)) + why.substr(std::min(why.find(": "), why.size()));
    return losses.count("debuginfod_absent") ? "absent" : "nothing";
  }
  size_t files_kept() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_)) count += entry.is_regular_file() && entry.file_size() != 0;
    return count;
  }

  std::string cache_;
  Diagnostics losses;
  std::chrono::milliseconds patience = 5s;
};

TEST_F(Debuginfod, AFileIsAskedForOnceAndKept) {
  LoopbackServer server([](const Connection& c) { c.answer("200 OK", elf_with(kId)); });
  {
    DebuginfodClient client(options({server.url()}));
    const auto file = find(client);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->is_foreign()) << "its contents are for the sandbox";
    EXPECT_EQ(find(client), file);
  }
  DebuginfodClient later(options({server.url()}));
  const auto kept = find(later);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->is_foreign());
  EXPECT_EQ(server.asked(), std::vector<std::string>{"/buildid/" + kHex + "/debuginfo"});
}

TEST_F(Debuginfod, ChunksAndTheirProgress) {
  const std::string elf = elf_with(kId);
  LoopbackServer server([&](const Connection& c) {
    c.send(fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-DEBUGINFOD-SIZE: {}\r\n\r\n", elf.size()));
    c.send(chunk(elf.substr(0, 7)) + chunk(elf.substr(7)) + "0\r\n\r\n");
  });
  DebuginfodOptions with_progress = options({server.url()});
  uint64_t received = 0, size = 0;
  with_progress.progress = [&](const DebuginfodProgress& p) { received = p.received, size = p.size; };
  DebuginfodClient client(std::move(with_progress));
  EXPECT_TRUE(find(client));
  EXPECT_EQ(received, elf.size());
  EXPECT_EQ(size, elf.size());
}

TEST_F(Debuginfod, WhatNoServerHasIsRememberedForAWhile) {
  LoopbackServer server([](const Connection& c) { c.answer("404 Not Found", "no such file"); });
  DebuginfodClient client(options({server.url()}));
  EXPECT_FALSE(find(client));
  EXPECT_EQ(losses.count("debuginfod_absent"), 1u);
  DebuginfodClient later(options({server.url()}));
  EXPECT_FALSE(find(later));
  EXPECT_EQ(server.asked().size(), 1u);
}

TEST_F(Debuginfod, TheNextServerMayHaveIt) {
  LoopbackServer without([](const Connection& c) { c.answer("404 Not Found"); });
  LoopbackServer liar([](const Connection& c) { c.answer("200 OK", elf_with("another build-id 123")); });
  LoopbackServer with([](const Connection& c) { c.answer("200 OK", elf_with(kId)); });
  DebuginfodClient client(options({without.url(), liar.url(), with.url()}));
  EXPECT_TRUE(find(client));
  EXPECT_EQ(losses.count("debuginfod_unusable"), 1u);
}

TEST_F(Debuginfod, AServerThatDoesNotAnswerIsGivenUpForTheRun) {
  patience = 200ms;
  LoopbackServer server([](const Connection& c) { c.pause(1h); });
  DebuginfodClient client(options({server.url()}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(find(client));
  EXPECT_FALSE(find(client, std::string(40, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
  EXPECT_EQ(server.asked().size(), 1u) << "not asked again";
  EXPECT_EQ(losses.count("debuginfod_given_up"), 1u);
  EXPECT_EQ(losses.entries().at("debuginfod_given_up").severity, Severity::kError) << "said in one line";
  EXPECT_EQ(example("debuginfod_given_up"), server.url() + ": answer: no answer in time");
  EXPECT_EQ(losses.count("debuginfod_absent"), 0u) << "nobody said that it is not there";
}

TEST_F(Debuginfod, SlowServersAreGivenUp) {
  patience = 300ms;
  EXPECT_TRUE(outcome([](const Connection& c) {
                c.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
                while (c.pause(20ms) && c.send("x")) {
                }
              }).starts_with("given_up: download: "));
  EXPECT_EQ(outcome([](const Connection& c) {
              c.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nx");
              c.pause(1h);
            }),
            "given_up: download: no answer in time");
  EXPECT_EQ(outcome([](const Connection& c) {
              for (char letter : std::string("HTTP/1.1 200 OK\r\nX: " + std::string(10'000, 'x')))
                if (!c.pause(20ms) || !c.send(std::string_view(&letter, 1))) return;
            }),
            "given_up: answer: no answer in time");
}

TEST_F(Debuginfod, LengthsThatAreWrong) {
  const std::string elf = elf_with(kId);
  const auto with_length = [&](size_t length, std::string_view body) {
    return outcome([&](const Connection& c) { c.send(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", length, body)); });
  };
  EXPECT_TRUE(with_length(elf.size() + 1, elf).starts_with("given_up: download: ")) << "it broke off";
  EXPECT_TRUE(with_length(elf.size() / 2, elf).starts_with("unusable: ")) << "the headers are cut off";
  EXPECT_TRUE(with_length(0, "").starts_with("unusable: "));
  EXPECT_TRUE(outcome([&](const Connection& c) {
                c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + elf);
              }).starts_with("given_up: "));
  EXPECT_TRUE(outcome([&](const Connection& c) {
                c.send("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + elf);
              }).starts_with("given_up: "));
  EXPECT_EQ(outcome([&](const Connection& c) { c.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + elf); }), "found") << "until it closes";
}

TEST_F(Debuginfod, BodiesThatAreTooLargeStopAtTheLimit) {
  EXPECT_EQ(outcome([](const Connection& c) {
              c.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nx");
              c.pause(1h);
            }),
            "unusable: libx.so: larger than 1048576 bytes");
  const std::string piece = chunk(std::string(60'000, 'x'));
  EXPECT_EQ(outcome([&](const Connection& c) {
              c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
              while (c.send(piece)) {
              }
            }),
            "unusable: libx.so: larger than 1048576 bytes");
}

TEST_F(Debuginfod, Redirections) {
  const auto moved_to = [&](const std::string& location, std::string_view status = "302 Found") {
    return outcome([=](const Connection& c) {
      if (c.path() == "/there" || c.path() == "/buildid/" + kHex + "/there") c.answer("200 OK", elf_with(kId));
      else c.answer(status, "", "Location: " + location + "\r\n");
    });
  };
  for (std::string_view status : {"301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"}) {
    EXPECT_EQ(moved_to("/there", status), "found") << status;
    std::filesystem::remove_all(cache_ + "/" + kHex);
  }
  EXPECT_EQ(moved_to("there"), "found") << "beside the file that was asked for";
  std::filesystem::remove_all(cache_ + "/" + kHex);
  LoopbackServer other([](const Connection& c) { c.answer("200 OK", elf_with(kId)); });
  EXPECT_EQ(moved_to(other.url() + "/x"), "found");
  std::filesystem::remove_all(cache_ + "/" + kHex);
  EXPECT_EQ(moved_to(other.url().substr(5) + "/x"), "found") << "//host:port";
  std::filesystem::remove_all(cache_ + "/" + kHex);
  EXPECT_EQ(moved_to("/buildid/again"), "given_up: redirected too often");
  EXPECT_EQ(moved_to("file:///etc/passwd"), "given_up: 'file:///etc/passwd' is not an http or https address");
  EXPECT_EQ(moved_to("http://user:word@127.0.0.1/x"), "given_up: 'http://user:word@127.0.0.1/x' is not an http or https address");
  EXPECT_TRUE(moved_to("").starts_with("unusable: ")) << "a redirection that does not say where to";
}

TEST_F(Debuginfod, AnswersThatAreNoFile) {
  EXPECT_TRUE(outcome([](const Connection& c) { c.answer("200 OK", "<html>please log in</html>"); }).starts_with("unusable: "));
  EXPECT_NE(outcome([](const Connection& c) { c.answer("200 OK", elf_with("another build-id 123")); }).find("its build-id is not " + kHex),
            std::string::npos);
  EXPECT_TRUE(outcome([](const Connection& c) { c.answer("200 OK", elf_with(kId), "Content-Encoding: gzip\r\n"); }).starts_with("unusable: "));
  EXPECT_EQ(outcome([](const Connection& c) { c.answer("403 Forbidden"); }), "unusable: libx.so: status 403");
  EXPECT_EQ(outcome([](const Connection& c) { c.answer("503 Busy"); }), "given_up: status 503");
  EXPECT_TRUE(outcome([](const Connection& c) { c.send("SSH-2.0-OpenSSH_9.2\r\n"); }).starts_with("given_up: answer: "));
  EXPECT_TRUE(outcome([](const Connection&) {}).starts_with("given_up: answer: ")) << "closed without a word";
  EXPECT_TRUE(outcome([](const Connection& c) { c.send("HTTP/1.1 200 OK\r\nX: " + std::string(1 << 20, 'x')); }).starts_with("given_up: answer: "));
}

TEST_F(Debuginfod, OnlyBuildIdsAreAskedFor) {
  LoopbackServer server([](const Connection& c) { c.answer("200 OK", elf_with(kId)); });
  DebuginfodClient client(options({server.url()}));
  for (const std::string& hex : {std::string(), std::string("ab"), std::string("../../../etc"), std::string("ABCDEF012345"), std::string("abcd/x"), std::string(130, 'a')})
    EXPECT_FALSE(find(client, hex)) << hex;
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(Debuginfod, AFileInTheCacheThatWasChangedIsAskedForAgain) {
  LoopbackServer server([](const Connection& c) { c.answer("200 OK", elf_with(kId)); });
  const std::string directory = cache_ + "/" + kHex;
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/debuginfo") << elf_with("another build-id 123");
  DebuginfodClient client(options({server.url()}));
  const auto file = find(client);
  ASSERT_TRUE(file);
  EXPECT_EQ(object::to_hex(file->build_id()), kHex);
}

TEST(DebuginfodOptions, ServersOfTheCommandLine) {
  auto options = debuginfod_options("http://a/ https://b:8002//  ima:enforcing");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->servers, (std::vector<std::string>{"http://a", "https://b:8002"}));
  EXPECT_FALSE(debuginfod_options("ftp://a"));
  EXPECT_FALSE(debuginfod_options("ima:enforcing"));
}

}  // namespace
}  // namespace cprof::symbolize
