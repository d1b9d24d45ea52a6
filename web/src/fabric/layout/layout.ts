/** Chooses how a fabric is drawn: as its family is, where that fits, else around a circle. */

import { drawCircle } from "./circle.ts";
import { type Family, familyOf } from "./family.ts";
import { drawGrid } from "./grid.ts";
import { drawLevels } from "./levels.ts";
import type { Drawn, Wanted } from "./shape.ts";

/** More switches than this are shown as a matrix. */
export const DRAWN_MAX = 64;

/** A drawing may be made this much smaller; text stays readable. */
export const SCALE_MIN = 0.75;

export function drawingOf(wanted: Wanted): Drawn {
  const family = familyOf(wanted.names.length, wanted.pairs, wanted.withHosts);
  const drawn = ofFamily(wanted, family);
  if (family.kind === "circle" || drawn.width * SCALE_MIN <= wanted.room.width) return drawn;
  const round = drawCircle(wanted, [...wanted.names.keys()], new Set());
  return round.width < drawn.width ? round : drawn;
}

function ofFamily(wanted: Wanted, family: Family): Drawn {
  switch (family.kind) {
    case "grid":
      return drawGrid(wanted, family.cells);
    case "levels":
      return drawLevels(wanted, family.level, family.tree);
    case "circle":
      return drawCircle(wanted, family.order, family.begins);
  }
}
