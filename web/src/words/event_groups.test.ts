import { expect, it } from "vitest";
import type { EventBody } from "../api/types.ts";
import { groupedEvents, textBehindName } from "./event_groups.ts";

const at = (time_us: number, device: string | null, event: string, count: number | null = null): EventBody => ({
  time_us,
  device,
  event,
  count,
  object: null,
  text: null,
});

it("a device that flaps is one line with its count, and a death behind it stands alone", () => {
  const turns = Array.from({ length: 50 }, (_, turn) =>
    at(100 + turn, "node184", turn % 2 === 0 ? "failing" : "answering"),
  );
  const events = [
    at(90, "node007", "failing"),
    ...turns,
    at(150, "node184", "flapping", 30),
    at(160, "node009", "restart"),
    at(170, "node184", "failing"),
  ];
  expect(
    groupedEvents(events).map(({ event, fromUs, toUs, times }) => [event.device, event.event, fromUs, toUs, times]),
  ).toEqual([
    ["node007", "failing", 90, 90, 1],
    // 25 written singly, and 30 changes counted by the collector: 15 times it failed and answered again.
    ["node184", "flapping", 100, 150, 40],
    ["node009", "restart", 160, 160, 1],
    ["node184", "failing", 170, 170, 1],
  ]);
});

it("one or two outages are told one by one", () => {
  const events = [
    at(1, "a", "failing"),
    at(2, "a", "answering"),
    at(3, "a", "failing"),
    at(4, "a", "answering"),
    at(5, null, "overrun"),
  ];
  expect(groupedEvents(events).map(({ event, times }) => [event.event, times])).toEqual(
    events.map(({ event }) => [event, 1]),
  );
});

it("what the collector did repeatedly is one line of the newest, with its count", () => {
  const slept = [1, 3, 5, 8].map((time) => at(time, null, "overrun"));
  const events = [
    ...slept.slice(0, 3),
    at(6, null, "mark"),
    at(7, null, "mark"),
    at(7, null, "mark"),
    ...slept.slice(3),
  ];
  expect(groupedEvents(events).map(({ event, fromUs, toUs, times }) => [event.event, fromUs, toUs, times])).toEqual([
    ["mark", 6, 6, 1],
    ["mark", 7, 7, 1],
    ["mark", 7, 7, 1],
    ["overrun", 1, 8, 4],
  ]);
});

it("loses no outage, whatever the order of devices is", () => {
  for (let round = 0; round < 200; round += 1) {
    const events = Array.from({ length: 60 }, (_, time) =>
      at(
        time,
        `n${Math.floor(Math.random() * 4)}`,
        ["failing", "answering", "restart"][Math.floor(Math.random() * 3)] ?? "",
      ),
    );
    const groups = groupedEvents(events);
    const outages = groups.reduce(
      (sum, { event, times }) => sum + (event.event === "failing" || event.event === "flapping" ? times : 0),
      0,
    );
    expect(outages).toBe(events.filter(({ event }) => event === "failing").length);
    expect(groups.filter(({ event }) => event.event === "restart").length).toBe(
      events.filter(({ event }) => event === "restart").length,
    );
  }
});

it("texts follow the name of their device", () => {
  expect(textBehindName("it answers again")).toBe("answers again");
  expect(textBehindName("items are missing")).toBe("items are missing");
});
