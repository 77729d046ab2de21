import { expect, it } from "vitest";
import { formatNs, formatValue, parseTime, percent } from "./units";

it("times", () => expect([0, 999, 1500, 12_400_000_000, -2e6, 59.4e9, 83.4e9, -60e9, 7.2e12, 7.5e12, 3599.9e9].map(formatNs))
  .toEqual(["0 ns", "999 ns", "1.5 µs", "12.4 s", "-2 ms", "59.4 s", "1 min 23 s", "-1 min", "2 h", "2 h 5 min", "1 h"]));
it("bytes and counts", () => expect([formatValue(1536, "bytes"), formatValue(12400, "count"), formatValue(5, "widgets")]).toEqual(["1.5 KiB", "12,400", "5 widgets"]));
it("percent of nothing", () => expect([percent(1, 0), percent(1, 3), percent(-1, 8)]).toEqual(["0 %", "33.3 %", "-12.5 %"]));
it("times that people write", () => expect(["1.2s", "300ms", "17us", "2", "x", ""].map(parseTime)).toEqual([1.2e9, 3e8, 17e3, 2e9, null, null]));
