import { expect, it } from "vitest";
import { inNaturalOrder, naturally } from "./natural.ts";

it("counts numbers inside names", () => {
  const ports = ["port11", "port1", "port3", "eth10", "eth9", "1/0/10", "1/0/9", "2/0/1"];
  expect(inNaturalOrder(ports, (name) => name)).toEqual([
    "1/0/9",
    "1/0/10",
    "2/0/1",
    "eth9",
    "eth10",
    "port1",
    "port3",
    "port11",
  ]);
});

it("puts any shuffle of counted names back into the order of counting", () => {
  for (let round = 0; round < 50; round += 1) {
    const counted = Array.from(
      { length: 120 },
      (_, at) => `sw${Math.floor(at / 40)} ge-0/${Math.floor((at % 40) / 20)}/${at % 20}`,
    );
    const shuffled = counted.map((name) => ({ name, key: Math.random() })).sort((left, right) => left.key - right.key);
    expect(inNaturalOrder(shuffled, ({ name }) => name).map(({ name }) => name)).toEqual(counted);
  }
});

it("tells names apart that count alike, and numbers beyond 2^53", () => {
  expect(naturally("node1", "node01")).toBeLessThan(0);
  expect(naturally("node01", "node01")).toBe(0);
  expect(naturally("disk90071992547409931", "disk90071992547409932")).toBeLessThan(0);
  expect(naturally("port", "port1")).toBeLessThan(0);
});
