/** Keys inside a strip. */

import { cursor } from "../session/cursor.ts";
import { intervalUs } from "../session/recordings.ts";
import type { Bounds } from "../time/window.ts";
import type { RowModel } from "./rows.ts";

/** Arrow keys inside the strip: rows up and down, intervals left and right; Enter selects. */
export function stripKeys(model: RowModel, bounds: () => Bounds, pick: (row: number, add: boolean) => void) {
  return (event: KeyboardEvent): void => {
    const at = cursor.value;
    const row = Math.max(
      0,
      model.rows.findIndex(({ device, part }) => device === at?.device && part === at.part),
    );
    const { fromUs, toUs } = bounds();
    const us = at?.us ?? toUs - intervalUs.peek() / 2;
    const stepUs = Math.max(intervalUs.peek(), (toUs - fromUs) / 200);
    const go = (row_: number, us_: number): void => {
      const there = model.rows[Math.min(model.rows.length - 1, Math.max(0, row_))];
      if (there !== undefined)
        cursor.value = { device: there.device, part: there.part, us: Math.min(toUs - 1, Math.max(fromUs, us_)) };
    };
    if (event.key === "ArrowUp") go(row - 1, us);
    else if (event.key === "ArrowDown") go(at === null ? 0 : row + 1, us);
    else if (event.key === "ArrowLeft") go(row, us - stepUs);
    else if (event.key === "ArrowRight") go(row, us + stepUs);
    else if (event.key === "Enter" && at !== null) pick(row, event.shiftKey || event.ctrlKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
