/**
 * The heat strip as pixels: a texture with one column a bin and one line a row (or a pixel row of folded rows).
 *
 * The texture is a ring like the bins behind it. A new interval colours one column of it, and the strip is shown by
 * at most two `drawImage`: scrolling moves no data at all.
 */

import { type Bins, foldColumn } from "./bins.ts";
import { cellPixel, NO_STATE, type Palette } from "./ramp.ts";

export interface Place {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export class StripPicture {
  private canvas: HTMLCanvasElement | null = null;
  private context: CanvasRenderingContext2D | null = null;
  private image: ImageData | null = null;
  private pixels = new Uint32Array();
  private values = new Float32Array();
  private states = new Uint8Array();
  private key = "";
  private of: Bins | null = null;
  private seen = -1;

  /** Colours what changed since the last call. */
  refresh(bins: Bins, palette: Palette, scale: number, log: boolean, linesMax: number): void {
    const lines = Math.max(1, Math.min(bins.rows, linesMax));
    const key = `${lines} ${scale} ${log} ${palette.empty}`;
    if (this.of !== bins || this.key !== key) this.begin(bins, lines, key);
    if (this.image === null || this.context === null || bins.revision === this.seen) return;
    const changed = bins.changedSince(this.seen);
    this.seen = bins.revision;
    for (const slot of changed)
      this.colour(bins, slot, lines, (value, state) => cellPixel(palette, value, state, scale, log), palette.empty);
    if (changed.length > bins.capacity / 4) this.context.putImageData(this.image, 0, 0);
    else for (const slot of changed) this.context.putImageData(this.image, 0, 0, slot, 0, 1, lines);
  }

  private begin(bins: Bins, lines: number, key: string): void {
    this.of = bins;
    this.key = key;
    this.seen = -1;
    this.canvas ??= document.createElement("canvas");
    this.canvas.width = bins.capacity;
    this.canvas.height = lines;
    this.context = this.canvas.getContext("2d");
    this.image = new ImageData(bins.capacity, lines);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.values = new Float32Array(lines);
    this.states = new Uint8Array(lines);
  }

  private colour(
    bins: Bins,
    slot: number,
    lines: number,
    pixel: (value: number, state: number) => number,
    empty: number,
  ): void {
    const column = bins.column(bins.binAt(slot));
    let { values, states } = this;
    if (column !== null) {
      if (lines === bins.rows)
        ({ values, states } = column as { values: Float32Array<ArrayBuffer>; states: Uint8Array<ArrayBuffer> });
      else foldColumn(column.values, column.states, lines, values, states);
    }
    for (let line = 0; line < lines; line += 1) {
      this.pixels[line * bins.capacity + slot] =
        column === null ? empty : pixel(values[line] ?? Number.NaN, states[line] ?? NO_STATE);
    }
  }

  /** Draws the window `fromUs` to `toUs` into a place of `context`. */
  draw(context: CanvasRenderingContext2D, place: Place, fromUs: number, toUs: number): void {
    const bins = this.of;
    if (bins === null || this.canvas === null || bins.newestBin < 0) return;
    const first = Math.max(Math.floor(fromUs / bins.binUs + 1e-6), bins.newestBin - bins.capacity + 1);
    const last = Math.min(Math.ceil(toUs / bins.binUs - 1e-6) - 1, bins.newestBin);
    const pixelsPerUs = place.width / (toUs - fromUs);
    const left = (bin: number): number => place.left + (bin * bins.binUs - fromUs) * pixelsPerUs;
    context.imageSmoothingEnabled = false;
    context.save();
    context.beginPath();
    context.rect(place.left, place.top, place.width, place.height);
    context.clip();
    for (let bin = first; bin <= last; ) {
      const slot = bin % bins.capacity;
      const run = Math.min(last - bin + 1, bins.capacity - slot);
      const x = left(bin);
      context.drawImage(this.canvas, slot, 0, run, this.canvas.height, x, place.top, left(bin + run) - x, place.height);
      bin += run;
    }
    context.restore();
  }
}
