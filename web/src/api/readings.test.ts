import { expect, it } from "vitest";
import { answersOf, numberOf, rowsOf } from "./readings.ts";

it("rows become objects, whatever the order of the columns", () => {
  expect(
    rowsOf({ columns: ["time_us", "device", "x"], rows: [[1, "a", null]], truncated: false, problems: [] } as never),
  ).toEqual([{ time_us: 1, device: "a", x: null }]);
  expect(numberOf("18446744073709551615")).toBeGreaterThan(1.8e19);
  expect(numberOf(null)).toBeNull();
});

it("a round trip is from the batch's hand-over to the kernel's receive time", () => {
  const polls = [
    { time_us: 1000, device: "a", pdu: 0, batch: 2, received_us: 350, state: "ok", reason: null, uptime_cs: 100 },
    { time_us: 2000, device: "a", pdu: 0, batch: 0, received_us: null, state: "missed", reason: null, uptime_cs: null },
  ];
  const batches = [
    { time_us: 1000, batch: 2, sent_us: 40 },
    { time_us: 2000, batch: 0, sent_us: 10 },
  ];
  const [first, second] = answersOf(polls, batches);
  expect(first).toMatchObject({ receivedUs: 1350, roundTripUs: 310, uptimeUs: 1_000_000, state: "ok" });
  expect(second).toMatchObject({ receivedUs: null, roundTripUs: null, state: "missed" });
});
