import { float32, tableFromArrays, tableToIPC, uint8, uint32 } from "@uwdata/flechette";
import { expect, it } from "vitest";
import { decodeFrame } from "./frame.ts";

/** Length of the first encapsulated message (Arrow columnar format, section "Encapsulated message format"). */
function firstMessage(stream: Uint8Array): number {
  return 8 + new DataView(stream.buffer, stream.byteOffset).getInt32(4, true);
}

it("decodes a batch that comes apart from its schema, with missing values missing", () => {
  const stream = tableToIPC(
    tableFromArrays(
      {
        offset_ms: [100, 100, 200],
        series: [0, 7, 7],
        out_octets: [1.5, null, 3],
        state: [0, 4, 1],
        age_ms: [10, Number.NaN, 20],
      },
      { types: { offset_ms: uint32(), series: uint32(), out_octets: float32(), state: uint8(), age_ms: float32() } },
    ),
    { format: "stream" },
  ) as Uint8Array;
  const cut = firstMessage(stream);
  const frame = decodeFrame(stream.slice(0, cut), stream.slice(cut), ["out_octets"], 1_700_000_000_000_000);
  expect(frame.rows).toBe(3);
  expect(frame.newestUs).toBe(1_700_000_000_200_000);
  expect(frame.oldestUs).toBe(1_700_000_000_100_000);
  expect(frame.timesUs(0)).toBe(1_700_000_000_100_000);
  expect([...frame.series]).toEqual([0, 7, 7]);
  expect([...(frame.columns[0] ?? [])]).toEqual([1.5, Number.NaN, 3]);
  expect([...frame.states]).toEqual([0, 4, 1]);
});

it("says which column is missing", () => {
  const stream = tableToIPC(tableFromArrays({ offset_ms: Uint32Array.of(1) }), { format: "stream" }) as Uint8Array;
  expect(() => decodeFrame(stream, new Uint8Array(), ["x"], 0)).toThrow("series");
});
