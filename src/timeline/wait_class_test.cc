#include "timeline/wait_class.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace cprof::timeline {
namespace {

using enum profile::WaitClass;
using profile::WaitClass;

// Stacks as the kernel gives them, outermost first; what every system call begins with is added here.
WaitClass class_of_call(std::vector<std::string_view> names) {
  names.insert(names.begin(), {"entry_SYSCALL_64_after_hwframe", "do_syscall_64"});
  names.insert(names.end(), {"schedule", "__schedule"});
  return wait_class_of(names);
}

TEST(WaitClass, Futex) {
  EXPECT_EQ(class_of_call({"__x64_sys_futex", "do_futex", "futex_wait", "__futex_wait", "futex_wait_queue"}), kFutex);
  EXPECT_EQ(class_of_call({"__x64_sys_futex", "do_futex", "futex_lock_pi", "rt_mutex_wait_proxy_lock"}), kFutex);
  EXPECT_EQ(class_of_call({"__arm64_sys_futex", "do_futex", "futex_wait"}), kFutex);
}

TEST(WaitClass, PollWhateverTheDescriptor) {
  EXPECT_EQ(class_of_call({"__x64_sys_poll", "do_sys_poll", "do_poll.constprop.0", "schedule_hrtimeout_range"}), kPoll);
  EXPECT_EQ(class_of_call({"__x64_sys_select", "kern_select", "core_sys_select", "do_select", "poll_schedule_timeout"}), kPoll);
  EXPECT_EQ(class_of_call({"__x64_sys_epoll_wait", "do_epoll_wait", "ep_poll", "schedule_hrtimeout_range"}), kPoll);
  EXPECT_EQ(class_of_call({"do_sys_poll", "do_poll", "sock_poll", "tcp_poll"}), kPoll);
}

TEST(WaitClass, Sleep) {
  EXPECT_EQ(class_of_call({"__x64_sys_clock_nanosleep", "common_nsleep", "hrtimer_nanosleep", "do_nanosleep"}), kSleep);
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "timerfd_read_iter"}), kSleep);
}

TEST(WaitClass, PipesTtysAndFilesAreIo) {
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "anon_pipe_read"}), kIo);
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "pipe_read"}), kIo);
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "tty_read", "n_tty_read"}), kIo);
  EXPECT_EQ(class_of_call({"__x64_sys_fsync", "do_fsync", "ext4_sync_file", "jbd2_complete_transaction"}), kIo);
  EXPECT_EQ(class_of_call({"ksys_pread64", "vfs_read", "ext4_file_read_iter", "filemap_read", "folio_wait_bit_common"}), kIo);
}

TEST(WaitClass, AFileSystemThatIsNotKnownIsStillIo) {
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "strangefs_read", "strangefs_wait"}), kIo);
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "strangefs_read", "mutex_lock", "__mutex_lock.constprop.0"}), kLock);
}

TEST(WaitClass, SocketsAreNetworkThoughReadGoesThroughTheFileLayer) {
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "sock_read_iter", "sock_recvmsg", "unix_stream_recvmsg"}), kNetwork);
  EXPECT_EQ(class_of_call({"__x64_sys_recvfrom", "__sys_recvfrom", "sock_recvmsg", "tcp_recvmsg", "sk_wait_data"}), kNetwork);
  EXPECT_EQ(class_of_call({"__x64_sys_accept4", "__sys_accept4", "do_accept", "inet_csk_accept"}), kNetwork);
  EXPECT_EQ(class_of_call({"__x64_sys_connect", "__sys_connect", "inet_stream_connect"}), kNetwork);
}

TEST(WaitClass, MemoryWinsOverIo) {
  EXPECT_EQ(wait_class_of(std::vector<std::string_view>{"asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault",
                                                        "handle_mm_fault", "filemap_fault", "folio_wait_bit_common",
                                                        "io_schedule", "schedule"}),
            kMemory);
  EXPECT_EQ(class_of_call({"ksys_read", "vfs_read", "filemap_read", "copy_page_to_iter", "asm_exc_page_fault",
                           "exc_page_fault", "handle_mm_fault", "io_schedule"}),
            kMemory);
  EXPECT_EQ(class_of_call({"ksys_write", "vfs_write", "ext4_file_write_iter", "__alloc_pages_slowpath",
                           "try_to_free_pages", "shrink_node", "io_schedule"}),
            kMemory);
}

// What fadvise, mlock, compaction and memory hotplug wait for: that each CPU hands over the pages in its hands.
TEST(WaitClass, DrainingThePageListsIsMemory) {
  EXPECT_EQ(class_of_call({"__x64_sys_fadvise64", "ksys_fadvise64_64", "generic_fadvise", "__lru_add_drain_all",
                           "__flush_work", "__wait_for_common", "schedule_timeout"}),
            kMemory);
}

TEST(WaitClass, MemoryWinsOverNothingElse) {
  EXPECT_EQ(class_of_call({"__sys_sendto", "sock_sendmsg", "tcp_sendmsg", "try_to_free_pages"}), kNetwork);
}

TEST(WaitClass, KernelLocks) {
  EXPECT_EQ(class_of_call({"__x64_sys_munmap", "down_write_killable", "rwsem_down_write_slowpath"}), kLock);
  EXPECT_EQ(class_of_call({"__x64_sys_rename", "__mutex_lock.constprop.0"}), kLock);
  EXPECT_EQ(class_of_call({"cgroup_attach_task", "percpu_down_write", "percpu_rwsem_wait"}), kLock);
  EXPECT_EQ(class_of_call({"do_thing", "rt_mutex_slowlock.isra.0"}), kLock);
}

TEST(WaitClass, TheOutermostMatchDecides) {
  EXPECT_EQ(class_of_call({"do_futex", "exc_page_fault", "io_schedule"}), kFutex);
  EXPECT_EQ(class_of_call({"ext4_file_write_iter", "down_write", "rwsem_down_write_slowpath"}), kIo);
}

TEST(WaitClass, TheRestIsOther) {
  EXPECT_EQ(class_of_call({"__x64_sys_wait4", "kernel_wait4", "do_wait"}), kOther);
  EXPECT_EQ(class_of_call({"ptrace_stop.part.0"}), kOther);
  EXPECT_EQ(class_of_call({"__x64_sys_rt_sigtimedwait", "do_sigtimedwait"}), kOther);
  EXPECT_EQ(wait_class_of({}), kOther);
  EXPECT_EQ(wait_class_of(std::vector<std::string_view>{"ret_from_fork", "kthread", "worker_thread"}), kOther);
}

TEST(WaitClass, ALongerRowWins) {
  EXPECT_EQ(wait_class_of(std::vector<std::string_view>{"filemap_fault"}), kMemory);
  EXPECT_EQ(wait_class_of(std::vector<std::string_view>{"filemap_read"}), kIo);
}

}  // namespace
}  // namespace cprof::timeline
