/** Time that was not read yet, drawn so that it looks neither like a value nor like nothing recorded. */

import type { Inks } from "../theme/theme.ts";
import type { Bounds } from "../time/window.ts";
import type { Place } from "./strip_picture.ts";

/** Distance of the slanted lines. */
const STEP_PX = 7;
/** What stands in while it is read shines through a little, so that zooming is calm. */
const GROUND_ALPHA = 0.75;
/** Words stand where there is room for them. */
const MARGIN_PX = 8;

/** Slanted lines over each of the times, and `words` in the middle of the widest. */
export function drawUnread(
  context: CanvasRenderingContext2D,
  area: Place,
  bounds: Bounds,
  gaps: readonly Bounds[],
  words: string,
  colours: Inks,
): void {
  const pixelsPerUs = area.width / (bounds.toUs - bounds.fromUs);
  let widest = { x: 0, width: 0 };
  for (const gap of gaps) {
    const x = Math.max(area.left, area.left + (gap.fromUs - bounds.fromUs) * pixelsPerUs);
    const width = Math.min(area.left + area.width, area.left + (gap.toUs - bounds.fromUs) * pixelsPerUs) - x;
    if (width <= 0) continue;
    if (width > widest.width) widest = { x, width };
    context.save();
    context.beginPath();
    context.rect(x, area.top, width, area.height);
    context.clip();
    context.fillStyle = colours.sheet;
    context.globalAlpha = GROUND_ALPHA;
    context.fillRect(x, area.top, width, area.height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.lineStrong;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = Math.floor((x - area.height) / STEP_PX) * STEP_PX; at < x + width; at += STEP_PX) {
      context.moveTo(at, area.top + area.height);
      context.lineTo(at + area.height, area.top);
    }
    context.stroke();
    context.restore();
  }
  context.font = `12px ${colours.font}`;
  const textWidth = context.measureText(words).width + 2 * MARGIN_PX;
  if (textWidth > widest.width || area.height < 24) return;
  const [x, y] = [widest.x + widest.width / 2, area.top + area.height / 2];
  context.fillStyle = colours.sheet;
  context.fillRect(x - textWidth / 2, y - 11, textWidth, 22);
  context.fillStyle = colours.ink2;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(words, x, y);
}
