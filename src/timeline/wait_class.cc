// Names are those of Linux 5.4 to 6.18 on x86-64 and arm64. What a compiler appends to a name (".isra.0", ".part.3",
// ".constprop.1") is not looked at. A name that ends in '*' stands for every name that begins so; a longer row wins over
// a shorter one. Functions that everything goes through (schedule, ksys_read) are not here; those of the file layer that
// sockets share are weak rows, which count when no other row matches any frame.
#include "timeline/wait_class.h"

#include <algorithm>
#include <optional>

namespace cprof::timeline {
namespace {

using enum profile::WaitClass;
using profile::WaitClass;

struct Row {
  std::string_view name;
  WaitClass wait_class;
  bool is_weak = false;
};

constexpr Row kRows[] = {
    {"do_futex", kFutex},
    {"futex_*", kFutex},
    {"__futex_wait", kFutex},
    {"__x64_sys_futex*", kFutex},
    {"__arm64_sys_futex*", kFutex},
    {"__do_sys_futex*", kFutex},

    {"__mutex_lock*", kLock},
    {"mutex_lock*", kLock},
    {"ww_mutex_lock*", kLock},
    {"__ww_mutex_lock*", kLock},
    {"down_read*", kLock},
    {"down_write*", kLock},
    {"__down_read*", kLock},
    {"__down_write*", kLock},
    {"rwsem_*", kLock},
    {"rwbase_*", kLock},
    {"rt_mutex_*", kLock},
    {"__rt_mutex_*", kLock},
    {"rt_spin_lock*", kLock},
    {"rtlock_*", kLock},
    {"percpu_down_*", kLock},
    {"__percpu_down_*", kLock},
    {"percpu_rwsem_wait*", kLock},

    {"do_sys_poll", kPoll},
    {"do_poll", kPoll},
    {"do_ppoll", kPoll},
    {"do_select", kPoll},
    {"core_sys_select", kPoll},
    {"do_pselect", kPoll},
    {"kern_select", kPoll},
    {"poll_schedule_timeout", kPoll},
    {"do_epoll_wait", kPoll},
    {"do_epoll_pwait", kPoll},
    {"ep_poll", kPoll},
    {"epoll_wait*", kPoll},

    {"hrtimer_nanosleep*", kSleep},
    {"do_nanosleep", kSleep},
    {"common_nsleep*", kSleep},
    {"alarm_timer_nsleep*", kSleep},
    {"posix_cpu_nsleep*", kSleep},
    {"process_cpu_nsleep", kSleep},
    {"thread_cpu_nsleep", kSleep},
    {"do_cpu_nanosleep", kSleep},
    {"timerfd_read*", kSleep},
    {"msleep*", kSleep},
    {"usleep_range*", kSleep},

    {"pipe_read", kIo},
    {"pipe_write", kIo},
    {"anon_pipe_read", kIo},
    {"anon_pipe_write", kIo},
    {"fifo_pipe_read", kIo},
    {"fifo_pipe_write", kIo},
    {"fifo_open", kIo},
    {"wait_for_partner", kIo},
    {"pipe_wait*", kIo},
    {"tty_*", kIo},
    {"n_tty_*", kIo},
    {"file_tty_write", kIo},
    {"redirected_tty_write", kIo},
    {"pty_*", kIo},
    {"do_fsync", kIo},
    {"vfs_fsync*", kIo},
    {"ksys_sync*", kIo},
    {"sync_filesystem", kIo},
    {"sync_inodes_sb", kIo},
    {"sync_file_range", kIo},
    {"filemap_*", kIo},
    {"__filemap_*", kIo},
    {"file_write_and_wait_range", kIo},
    {"generic_file_*", kIo},
    {"__generic_file_*", kIo},
    {"generic_perform_write", kIo},
    {"blkdev_*", kIo},
    {"iomap_*", kIo},
    {"__iomap_*", kIo},
    {"ext4_*", kIo},
    {"__ext4_*", kIo},
    {"jbd2_*", kIo},
    {"xfs_*", kIo},
    {"btrfs_*", kIo},
    {"f2fs_*", kIo},
    {"fuse_*", kIo},
    {"nfs_*", kIo},
    {"nfs4_*", kIo},
    {"p9_*", kIo},
    {"v9fs_*", kIo},
    {"ovl_*", kIo},
    {"zfs_*", kIo},
    {"submit_bio_wait", kIo},
    {"blk_mq_*", kIo},
    {"bio_*", kIo},
    {"folio_wait_*", kIo},
    {"__folio_lock*", kIo},
    {"wait_on_page_*", kIo},
    {"__lock_page*", kIo},
    {"__wait_on_buffer", kIo},
    {"wait_on_buffer", kIo},
    {"io_schedule*", kIo},
    {"balance_dirty_pages*", kIo},
    {"writeback_*", kIo},
    {"wb_wait_for_completion", kIo},
    {"read_events", kIo},
    {"io_cqring_wait*", kIo},
    {"vfs_read", kIo, true},
    {"vfs_write", kIo, true},
    {"vfs_readv", kIo, true},
    {"vfs_writev", kIo, true},
    {"do_iter_read", kIo, true},
    {"do_iter_write", kIo, true},
    {"do_splice", kIo, true},
    {"do_sendfile", kIo, true},
    {"iterate_dir", kIo, true},

    {"sock_*", kNetwork},
    {"____sys_recvmsg", kNetwork},
    {"____sys_sendmsg", kNetwork},
    {"___sys_recvmsg", kNetwork},
    {"___sys_sendmsg", kNetwork},
    {"__sys_recv*", kNetwork},
    {"__sys_send*", kNetwork},
    {"__sys_accept*", kNetwork},
    {"__sys_connect*", kNetwork},
    {"do_accept", kNetwork},
    {"do_recvmmsg", kNetwork},
    {"__x64_sys_recv*", kNetwork},
    {"__x64_sys_sendto", kNetwork},
    {"__x64_sys_sendm*", kNetwork},
    {"__x64_sys_accept*", kNetwork},
    {"__x64_sys_connect", kNetwork},
    {"inet_*", kNetwork},
    {"inet6_*", kNetwork},
    {"__inet_stream_connect", kNetwork},
    {"tcp_*", kNetwork},
    {"udp_*", kNetwork},
    {"udpv6_*", kNetwork},
    {"unix_stream_*", kNetwork},
    {"unix_dgram_*", kNetwork},
    {"unix_accept", kNetwork},
    {"unix_wait_for_peer", kNetwork},
    {"netlink_*", kNetwork},
    {"vsock_*", kNetwork},
    {"sk_wait_data", kNetwork},
    {"sk_stream_wait_*", kNetwork},
    {"__skb_wait_for_more_packets", kNetwork},
    {"__skb_recv_*", kNetwork},

    {"exc_page_fault", kMemory},
    {"asm_exc_page_fault", kMemory},
    {"do_page_fault", kMemory},
    {"__do_page_fault", kMemory},
    {"do_user_addr_fault", kMemory},
    {"do_translation_fault", kMemory},
    {"do_mem_abort", kMemory},
    {"el0_da", kMemory},
    {"el0_ia", kMemory},
    {"handle_mm_fault", kMemory},
    {"__handle_mm_fault", kMemory},
    {"filemap_fault", kMemory},
    {"do_swap_page", kMemory},
    {"swap_read*", kMemory},
    {"swapin_readahead", kMemory},
    {"migration_entry_wait*", kMemory},
    {"lru_add_drain_all", kMemory},
    {"__lru_add_drain_all", kMemory},
    {"__get_user_pages", kMemory},
    {"populate_vma_page_range", kMemory},
    {"faultin_page*", kMemory},
    {"try_to_free_pages", kMemory},
    {"try_to_free_mem_cgroup_pages", kMemory},
    {"mem_cgroup_*", kMemory},
    {"do_try_to_free_pages", kMemory},
    {"throttle_direct_reclaim", kMemory},
    {"shrink_node*", kMemory},
    {"reclaim_throttle", kMemory},
    {"try_to_compact_pages", kMemory},
    {"handle_userfault", kMemory},
    {"out_of_memory", kMemory},

    {"do_wait", kOther},
    {"kernel_wait4", kOther},
    {"do_wait4", kOther},
    {"kernel_waitid", kOther},
    {"ptrace_*", kOther},
    {"do_signal_stop", kOther},
    {"do_jobctl_trap", kOther},
    {"do_sigtimedwait", kOther},
    {"sigsuspend", kOther},
    {"do_semtimedop", kOther},
};

std::string_view without_compiler_suffix(std::string_view name) { return name.substr(0, name.find('.')); }

// How well the row fits: 0 not at all, else larger is better.
size_t fit(const Row& row, std::string_view name) {
  if (!row.name.ends_with('*')) return row.name == name ? name.size() + 1 : 0;
  const std::string_view prefix = row.name.substr(0, row.name.size() - 1);
  return name.starts_with(prefix) ? prefix.size() : 0;
}

const Row* find_row(std::string_view name) {
  const Row* best = nullptr;
  size_t best_fit = 0;
  for (const Row& row : kRows) {
    const size_t this_fit = fit(row, name);
    if (this_fit > best_fit) best = &row, best_fit = this_fit;
  }
  return best;
}

}  // namespace

WaitClass wait_class_of(std::span<const std::string_view> names) {
  std::optional<WaitClass> outermost, weak;
  for (std::string_view name : names) {
    const Row* row = find_row(without_compiler_suffix(name));
    if (!row) continue;
    if (row->is_weak) {
      if (!weak) weak = row->wait_class;
      continue;
    }
    if (outermost == kIo && row->wait_class == kMemory) return kMemory;
    if (!outermost) outermost = row->wait_class;
  }
  return outermost.value_or(weak.value_or(kOther));
}

}  // namespace cprof::timeline
