// Words that stand in several places of the page, or are long.
export const S = {
  tabs: { flame: "Flame", table: "Table", timeline: "Timeline", source: "Source", sql: "SQL" },
  hint: "Widest boxes cost the most; a box's children are the functions it called. Click to zoom.",
  hoverHint: "Hover or select a box to see what it costs.",
  search: "Search functions  ( / )",
  allThreads: "All threads",
  noSource: "Without the source text: cprof view FILE shows it, and cprof convert --with-source puts it into a page.",
  gone: "cprof is not running any more: what is loaded still works, source, instructions and SQL do not.",
  noServer: "Needs a running cprof: open this profile with cprof view FILE.",
  noTimeline: "This profile holds sums only, no samples with a time: there is nothing to lay out over time.",
  noRows: "Single samples were left out of this page because there are too many. cprof view FILE shows the timeline.",
  filtersOfThisOnly: "time, threads and labels are chosen in this file only, not in the base",
  whereTime: "Where the time goes",
  whereValue: "Where it goes",
} as const;
