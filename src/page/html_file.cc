#include "page/html_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/groups.h"
#include "analyze/site_totals.h"
#include "analyze/top.h"
#include "page/embedded_page.h"

namespace cprof::page {
namespace {

// Nothing may be asked for from anywhere: not even a name in the profile can make the page load something.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:\">\n";
constexpr size_t kListed = 20;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// For mail previews, grep, and browsers without JavaScript.
std::string as_text(const profile::Profile& profile) {
  const analyze::Weights weights = analyze::sample_weights(profile, {.kind = analyze::WeightSelection::Kind::kMetric});
  const analyze::SiteTotals totals = analyze::sum_by_site(profile, weights);
  const analyze::Groups groups(profile, analyze::Granularity::kFunctions);
  std::string out = fmt::format("<pre>{} of {} in total; the functions that spend most:\n", totals.total, escaped(weights.title));
  size_t listed = 0;
  for (const analyze::TopRow& row : analyze::top_functions(profile, groups, totals)) {
    if (listed++ == kListed) break;
    out += fmt::format("{:>14} {}\n", row.self, escaped(groups.name(row.group).text));
  }
  return out + "</pre>";
}

std::string title_of(const PageProfile& page) {
  const std::string& command = page.profile->run.command;
  return escaped(command.empty() ? page.name : command);
}

}  // namespace

Result<void> write_html_file(std::span<const PageProfile> profiles, const PayloadOptions& options, const Sink& sink) {
  const std::string_view page = embedded_page();
  const size_t mark = page.find(kDataMark), head = page.find("<meta charset"), title = page.find("<title>");
  if (mark == std::string_view::npos || head == std::string_view::npos || title == std::string_view::npos)
    return fail("the page inside this program is not whole");
  const size_t title_end = page.find("</title>", title);
  TRY(sink(page.substr(0, head)));
  TRY(sink(kPolicy));
  TRY(sink(page.substr(head, title - head)));
  TRY(sink(fmt::format("<title>{} - cprof</title>", profiles.empty() ? "" : title_of(profiles[0]))));
  TRY(sink(page.substr(title_end + 8, mark - title_end - 8)));
  for (const PageProfile& p : profiles) {
    TRY(sink(fmt::format("<noscript>{}</noscript>\n<script type=\"application/octet-stream\" class=\"cprof-data\" data-name=\"{}\">",
                         as_text(*p.profile), escaped(p.name))));
    const std::string packed = TRY(pack_payload(encode_payload(*p.profile, options)));
    TRY(sink(base64(packed)));
    TRY(sink("</script>\n"));
  }
  return sink(page.substr(mark + kDataMark.size()));
}

}  // namespace cprof::page
