/** Copies a program, and says so; where the browser forbids it, the program is shown to be copied by hand. */

import { signal } from "@preact/signals";

export interface Copied {
  readonly what: string;
  readonly text: string;
  readonly done: boolean;
}

export const copied = signal<Copied | null>(null);

const SHOWN_MS = 2500;
let timer = 0;

export function copyText(text: string, what: string): void {
  const tell = (done: boolean): void => {
    copied.value = { what, text, done };
    window.clearTimeout(timer);
    if (done) {
      timer = window.setTimeout(() => {
        copied.value = null;
      }, SHOWN_MS);
    }
  };
  // Browsers offer a clipboard only on loopback and over TLS.
  if (navigator.clipboard === undefined) tell(false);
  else
    navigator.clipboard.writeText(text).then(
      () => tell(true),
      () => tell(false),
    );
}
