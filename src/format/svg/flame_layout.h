// Boxes of a flame graph from folded lines in the order of their bytes: each box is a frame with everything above it.
// Widths follow absolute values, so that what a difference took away can be seen too. Pure; no recursion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cprof::format {

struct FlameBox {
  std::string name;
  uint32_t depth = 0;    // 0: the frame next to the root
  double start = 0;      // sum of absolute values left of it
  double width = 0;      // sum of absolute values
  int64_t total = 0;     // signed
};

class FlameLayout {
 public:
  // Frames narrower than this are left out together with what is above them, and counted.
  explicit FlameLayout(double least_width) : least_width_(least_width) {}

  void add(std::string_view path, int64_t value);
  void finish();

  const std::vector<FlameBox>& boxes() const { return boxes_; }  // in the order in which they end
  double width() const { return at_; }
  int64_t total() const { return total_; }
  uint32_t depth() const { return depth_; }  // of the boxes that are there, in rows
  uint64_t narrow() const { return narrow_; }

 private:
  void close(size_t depth);

  double least_width_;
  std::vector<FlameBox> open_, boxes_;
  double at_ = 0;
  int64_t total_ = 0;
  uint32_t depth_ = 0;
  uint64_t narrow_ = 0;
};

}  // namespace cprof::format
