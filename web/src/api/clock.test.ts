import { beforeEach, expect, it } from "vitest";
import { forgetClock, heardClock, sinceServerUs } from "./clock.ts";

beforeEach(forgetClock);

it("tells how long something was under way, by the fastest answer", () => {
  expect(sinceServerUs(5e6, 0)).toBe(0);
  // The server's clock is 1,000 s ahead of ours; its time is told in the middle of a slow question.
  heardClock("1000500000", 0, 1000);
  expect(sinceServerUs(1_000_000_000, 1000)).toBe(1_000_000);
  // A faster one counts, a slower one after it does not.
  heardClock("1002010000", 2000, 2020);
  heardClock("1009000000", 3000, 3900);
  expect(sinceServerUs(1_002_010_000, 2310)).toBe(300_000);
  expect(sinceServerUs(1_009_000_000, 2310)).toBe(0);
  heardClock(null, 0, 1);
  heardClock("soon", 0, 1);
  expect(sinceServerUs(1_002_010_000, 2310)).toBe(300_000);
  // After minutes clocks may have drifted apart.
  heardClock("1400000000", 400_000, 400_100);
  expect(sinceServerUs(1_400_000_000, 400_050)).toBe(0);
  expect(sinceServerUs(1_400_000_000, 400_150)).toBe(100_000);
});
