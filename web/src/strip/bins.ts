/**
 * Readings of many rows over a window of time, in bins: what the strip, the grid and the lines are drawn from.
 *
 * A ring of `capacity` bins; a bin holds one value and one state a row, contiguous, so that writing an interval
 * of 10,000 rows touches one block of memory. Bins are counted from the epoch (`floor(time / binUs)`), so that live
 * frames and answers about the past meet without an offset. A bin keeps the greatest value and the worst state
 * that fell into it: no spike and no fault vanishes by zooming out.
 */

import { NO_STATE } from "./ramp.ts";

/** Most values a ring may hold, 4 octets each: 64 MiB. More rows mean fewer bins. */
const VALUES_MAX = 16 * 1024 * 1024;

/** The rows of one bin. */
export interface Column {
  readonly values: Float32Array;
  readonly states: Uint8Array;
}

export class Bins {
  readonly rows: number;
  readonly binUs: number;
  readonly capacity: number;
  private readonly values: Float32Array;
  private readonly states: Uint8Array;
  /** Bin that each place of the ring holds; -1: none. */
  private readonly held: Float64Array;
  /** Revision in which each place last changed. */
  private readonly touched: Float64Array;
  private newest = -1;
  /** Rises with every change, so that a painter knows whether there is anything to do. */
  revision = 0;

  constructor(rows: number, binUs: number, capacity: number) {
    this.rows = rows;
    this.binUs = binUs;
    this.capacity = Math.max(2, Math.min(capacity, Math.floor(VALUES_MAX / Math.max(1, rows))));
    this.values = new Float32Array(this.capacity * rows).fill(Number.NaN);
    this.states = new Uint8Array(this.capacity * rows).fill(NO_STATE);
    this.held = new Float64Array(this.capacity).fill(-1);
    this.touched = new Float64Array(this.capacity);
  }

  /** The bin of a moment. Due instants of intervals are whole multiples of them, up to the clock's rounding. */
  binOf(us: number): number {
    return Math.floor(us / this.binUs + 1e-6);
  }

  /** The newest bin with anything in it; -1 if there is none. */
  get newestBin(): number {
    return this.newest;
  }

  /** Offset of a bin's rows in the ring, or -1 if the ring does not hold it. */
  private place(bin: number): number {
    if (bin <= this.newest - this.capacity) return -1;
    const slot = bin % this.capacity;
    return this.held[slot] === bin ? slot * this.rows : -1;
  }

  /** Makes room for `bin`; false if it is older than what the ring holds. */
  private open(bin: number): boolean {
    if (bin < 0 || bin <= this.newest - this.capacity) return false;
    // Bins that were passed over hold nothing, and what was in their places is too old.
    const passed = this.newest < 0 ? bin : Math.max(this.newest + 1, bin - this.capacity + 1);
    for (let between = passed; between < bin; between += 1) this.empty(between % this.capacity, -1);
    const slot = bin % this.capacity;
    if (this.held[slot] !== bin) this.empty(slot, bin);
    if (bin > this.newest) this.newest = bin;
    this.revision += 1;
    this.touched[slot] = this.revision;
    return true;
  }

  private empty(slot: number, bin: number): void {
    this.held[slot] = bin;
    this.touched[slot] = this.revision + 1;
    this.values.fill(Number.NaN, slot * this.rows, (slot + 1) * this.rows);
    this.states.fill(NO_STATE, slot * this.rows, (slot + 1) * this.rows);
  }

  /** Places of the ring that changed after a revision. */
  changedSince(revision: number): number[] {
    const places: number[] = [];
    for (let slot = 0; slot < this.capacity; slot += 1) if ((this.touched[slot] ?? 0) > revision) places.push(slot);
    return places;
  }

  /** The bin in a place of the ring; -1: none. */
  binAt(slot: number): number {
    return this.held[slot] ?? -1;
  }

  /** Puts a value and a state where they belong; NaN and `NO_STATE` leave what is there. */
  put(bin: number, row: number, value: number, state: number): void {
    if (!this.open(bin)) return;
    this.putAt(this.place(bin) + row, value, state);
  }

  private putAt(at: number, value: number, state: number): void {
    const before = this.values[at] ?? Number.NaN;
    if (!(value <= before) && !Number.isNaN(value)) this.values[at] = value;
    const worst = this.states[at] ?? NO_STATE;
    if (state !== NO_STATE && (worst === NO_STATE || state > worst)) this.states[at] = state;
  }

  /**
   * Puts one live frame: `rowOf[series]` is the row (-1: not shown). Several series of one row meet as several
   * values of one bin do: the greatest counts.
   */
  putFrame(bin: number, series: Uint32Array, values: Float32Array, states: Uint8Array, rowOf: Int32Array): void {
    if (!this.open(bin)) return;
    const begin = this.place(bin);
    for (let at = 0; at < series.length; at += 1) {
      const row = rowOf[series[at] ?? 0] ?? -1;
      if (row >= 0) this.putAt(begin + row, values[at] ?? Number.NaN, states[at] ?? NO_STATE);
    }
  }

  value(bin: number, row: number): number {
    const begin = this.place(bin);
    return begin < 0 ? Number.NaN : (this.values[begin + row] ?? Number.NaN);
  }

  /** The value of the cell `at` of `rows * capacity`, in no order that means anything; NaN: none. */
  cell(at: number): number {
    return this.values[at] ?? Number.NaN;
  }

  state(bin: number, row: number): number {
    const begin = this.place(bin);
    return begin < 0 ? NO_STATE : (this.states[begin + row] ?? NO_STATE);
  }

  /** The rows of a bin, without a copy; null if the ring does not hold it. */
  column(bin: number): Column | null {
    const begin = this.place(bin);
    return begin < 0
      ? null
      : {
          values: this.values.subarray(begin, begin + this.rows),
          states: this.states.subarray(begin, begin + this.rows),
        };
  }

  /** The greatest value of bins `from` to `to`, both included; NaN if there is none. */
  greatest(from: number, to: number): number {
    let greatest = Number.NaN;
    for (let bin = Math.max(from, this.newest - this.capacity + 1); bin <= Math.min(to, this.newest); bin += 1) {
      const begin = this.place(bin);
      if (begin < 0) continue;
      for (let at = begin; at < begin + this.rows; at += 1) {
        const value = this.values[at] ?? Number.NaN;
        if (!(value <= greatest) && !Number.isNaN(value)) greatest = value;
      }
    }
    return greatest;
  }
}

/**
 * Folds `rows` to `lines` pixel rows: greatest value, worst state. Line `l` holds the rows from
 * `floor(l * rows / lines)` up to the begin of the next one.
 */
export function foldColumn(
  values: Float32Array,
  states: Uint8Array,
  lines: number,
  intoValues: Float32Array,
  intoStates: Uint8Array,
): void {
  const rows = values.length;
  for (let line = 0; line < lines; line += 1) {
    const end = Math.max(Math.floor(((line + 1) * rows) / lines), Math.floor((line * rows) / lines) + 1);
    let greatest = Number.NaN;
    let worst = NO_STATE;
    for (let row = Math.floor((line * rows) / lines); row < end; row += 1) {
      const value = values[row] ?? Number.NaN;
      if (!(value <= greatest) && !Number.isNaN(value)) greatest = value;
      const state = states[row] ?? NO_STATE;
      if (state !== NO_STATE && (worst === NO_STATE || state > worst)) worst = state;
    }
    intoValues[line] = greatest;
    intoStates[line] = worst;
  }
}
