/** What the pointer or the keyboard is at, in every picture at once; it is not part of the address. */

import { signal } from "@preact/signals";

export interface Cursor {
  readonly device: string;
  /** Interface, disk ... when rows are single series. */
  readonly part: string;
  /** null: the newest. */
  readonly us: number | null;
}

export const cursor = signal<Cursor | null>(null);
