/** What stands in how much room in the middle of a view: more rows, a second quantity, more charts; nothing is stretched. */

export interface Room {
  /** Pixels of the column, and how many rows the strip has. */
  readonly width: number;
  readonly height: number;
  readonly rows: number;
  /** Whether the quantity has another that is looked at together with it. */
  readonly beside: boolean;
}

export interface Shares {
  /** Pixels of a strip, its times below it among them. */
  readonly strip: number;
  /** Whether a second strip shows the other quantity. */
  readonly second: boolean;
  readonly charts: number;
}

/** From this width on charts stand four in a line (style.css: 2000 pixels of the window). */
const ONE_LINE_PX = 1440;
/** A line of charts, and what stands around strips and charts: titles, gaps, the names of lines. */
const CHART_PX = 158;
const AROUND_PX = 86;
const TITLE_PX = 38;
/** A strip's times. */
const AXIS_PX = 18;
const ROW_MAX_PX = 14;
/** A second strip is worth rows that are somewhat lower. */
const ROW_BOTH_PX = 8;
const CHARTS_MAX = 12;
const STRIP_MIN_PX = 180;

export function sharesOf({ width, height, rows, beside }: Room): Shares {
  const columns = width >= ONE_LINE_PX ? 4 : 2;
  const least = columns === 4 ? 1 : 2;
  const free = height - AROUND_PX - least * CHART_PX;
  const fitting = (room: number): number =>
    Math.floor(Math.min(ROW_MAX_PX, Math.max(1, room / Math.max(1, rows))) * 2) / 2;
  const both = fitting((free - TITLE_PX) / 2 - AXIS_PX);
  const second = beside && both >= ROW_BOTH_PX && 2 * (Math.max(60, both * rows) + AXIS_PX) + TITLE_PX <= free;
  const rowHeight = second ? both : fitting(free - AXIS_PX);
  const strip = Math.round(Math.min(Math.max(STRIP_MIN_PX, free - AXIS_PX), Math.max(60, rowHeight * rows))) + AXIS_PX;
  const left = free - strip - (second ? strip + TITLE_PX : 0);
  return { strip, second, charts: Math.min(CHARTS_MAX, columns * (least + Math.max(0, Math.floor(left / CHART_PX)))) };
}

/** How many charts stand in what is left of a view. */
export function chartsLeft(width: number, height: number): number {
  return (width >= ONE_LINE_PX ? 4 : 2) * Math.max(0, Math.floor(height / CHART_PX));
}

/** How many charts stand in a column of a view, below whatever takes the rest of its height. */
export function chartsFitting(width: number, height: number): number {
  return (width >= ONE_LINE_PX ? 4 : 2) * Math.max(1, Math.floor((height - AROUND_PX) / CHART_PX));
}
