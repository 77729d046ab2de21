// What programs that walk stacks need of this side, and what comes of them: the side band's events keep the tables they walk
// by up to date and go on to one sink, with the programs' records among them in the order of time, each stack before the
// first event that names it. Used by the collectors with such programs, on their thread; the side band delivers to it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "collect/bpf/module_book.h"
#include "collect/bpf/process_book.h"
#include "collect/bpf/sampler_record.h"
#include "collect/bpf/stack_book.h"
#include "collect/bpf/walk_maps.h"
#include "event/event.h"
#include "event/record_sorter.h"

namespace cprof::collect {

class WalkStream final : public event::EventSink {
 public:
  // Whoever has the programs. Called on the way to the sink.
  class Owner {
   public:
    virtual void describe(event::SessionInfo& info) = 0;        // what the side band says of the run is not all
    virtual bool on_sample(event::Sample& sample) = 0;          // false: nobody needs it
    virtual Result<void> before_finish(uint64_t end_ns) = 0;    // all records have been delivered

   protected:
    ~Owner() = default;
  };
  struct Choices {
    bool makes_tables = false;  // as ProcessBook's
    bool is_counted = false;    // counts name stacks long after they were met
  };
  WalkStream(WalkMaps& maps, const Choices& choices, Owner& owner, Diagnostics& diagnostics);

  void deliver_to(event::EventSink& sink) { sink_ = &sink; }
  // Reads the rings; what was there comes with the side band's next round.
  void drain();
  // Mappings that the side band told of are known to the programs from here on. At other times its rounds do that.
  void publish(uint64_t seen_ns) { processes_.publish(seen_ns); }
  // Stacks are told again from time to time: what is not met any more is forgotten, here and by the sink.
  void repeat_stacks(uint64_t now_ns, uint64_t every_ns);

  // For counts. An id that nobody has described becomes 0.
  Result<void> describe_stack(uint64_t& id, uint64_t time_ns);
  bool is_told(uint64_t id);
  void counts_delivered_until(uint64_t time_ns) { stacks_.delivered_until(time_ns); }

  bool is_behind() const { return processes_.is_behind(); }
  uint64_t records() const { return records_; }
  uint64_t bytes_read() const { return bytes_read_; }
  // What got lost on the way, and what the tables lacked. Once, at the end.
  void report();

  Result<void> begin(const event::SessionInfo& side) override;
  Result<void> on_event(const event::Event& event) override;
  Result<void> on_round(uint64_t time_ns) override;
  Result<void> finish(uint64_t end_ns) override;

 private:
  void take_record(std::span<const std::byte> record);
  void note_malformed();
  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }
  void hold(const event::Event& event);
  Result<void> pass_on();
  Result<void> deliver(uint64_t until_ns);
  Result<void> deliver_record(std::span<const std::byte> record);
  Result<void> deliver_stack(std::span<const std::byte> record);
  Result<void> tell_stack(StackBook::Stack& stack, uint64_t time_ns);

  WalkMaps& maps_;
  Choices choices_;
  Owner& owner_;
  Diagnostics& diagnostics_;
  event::EventSink* sink_ = nullptr;
  ModuleBook modules_;
  ProcessBook processes_;
  StackBook stacks_;
  SamplerRecordDecoder decoder_;
  event::RecordSorter sorter_;
  event::Event event_, stack_event_;
  std::vector<event::Event> held_;  // of a round: what the sink does with them may take long
  std::deque<std::string> texts_;   // what held events view
  uint64_t bytes_read_ = 0, records_ = 0, last_repeat_ns_ = 0;
};

}  // namespace cprof::collect
