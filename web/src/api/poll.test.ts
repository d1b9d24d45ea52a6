import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { poll, type Told } from "./poll.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("asks one question at a time, however slow the answers are", async () => {
  let [underWay, most, asked] = [0, 0, 0];
  const stop = poll(
    async () => {
      asked += 1;
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resume) => setTimeout(resume, 7000));
      underWay -= 1;
      return asked;
    },
    1000,
    () => undefined,
  );
  await vi.advanceTimersByTimeAsync(60_000);
  expect(most).toBe(1);
  expect(asked).toBe(8);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(8);
});

it("keeps the last answer with its time where the next one fails, and gives up on one that never comes", async () => {
  const told: Told<number>[] = [];
  let turn = 0;
  const stop = poll(
    (signal) => {
      turn += 1;
      if (turn === 1) return Promise.resolve(41);
      if (turn === 2) return Promise.reject(new Error("gone"));
      return new Promise<number>((_, fail) =>
        signal.addEventListener("abort", () => fail(new DOMException("", "AbortError"))),
      );
    },
    1000,
    (one) => told.push(one),
  );
  await vi.advanceTimersByTimeAsync(30_000);
  stop();
  const first = told[0];
  expect(first).toMatchObject({ value: 41, failed: null });
  expect(told[1]).toEqual({ ...first, failed: "gone" });
  expect(told[2]).toEqual({ ...first, failed: "the server has not answered for 20 s" });
});

it("cancels what is under way, and says nothing any more", async () => {
  let cancelled = false;
  const told: unknown[] = [];
  const stop = poll(
    (signal) =>
      new Promise<number>((_, fail) =>
        signal.addEventListener("abort", () => {
          cancelled = true;
          fail(new DOMException("", "AbortError"));
        }),
      ),
    1000,
    (one) => told.push(one),
  );
  await vi.advanceTimersByTimeAsync(500);
  stop();
  await vi.advanceTimersByTimeAsync(30_000);
  expect([cancelled, told]).toEqual([true, []]);
});
