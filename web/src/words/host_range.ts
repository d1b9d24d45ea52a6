/**
 * Names of devices, folded as Slurm does: `node[001-004,007]`, `sw1`. The address and the copied commands stay
 * short that way, whatever number of devices is selected.
 */

import { naturally } from "./natural.ts";

interface Numbered {
  readonly stem: string;
  readonly digits: string;
}

function numbered(name: string): Numbered | null {
  const match = /^(.*?)(\d+)$/.exec(name);
  return match === null || (match[2] ?? "").length > 9 ? null : { stem: match[1] ?? "", digits: match[2] ?? "" };
}

/** The shortest text of a set of names; order and repeats are lost. */
export function foldNames(names: readonly string[]): string {
  const plain: string[] = [];
  const families = new Map<string, { stem: string; width: number; numbers: number[] }>();
  for (const name of new Set(names)) {
    const parts = numbered(name);
    if (parts === null) {
      plain.push(name);
      continue;
    }
    // `node1` and `node001` are different devices: a family has one width if padded, and none if not.
    const padded = parts.digits.length > 1 && parts.digits.startsWith("0");
    const width = padded ? parts.digits.length : 0;
    const key = `${parts.stem}\u0000${width > 0 ? width : ""}`;
    const family = families.get(key) ?? { stem: parts.stem, width, numbers: [] };
    family.numbers.push(Number(parts.digits));
    families.set(key, family);
  }
  joinFullWidth(families);
  for (const { stem, width, numbers } of families.values()) plain.push(foldFamily(stem, width, numbers));
  return plain.sort(naturally).join(",");
}

/** `node099` and `node100` are one family: an unpadded number of the padded width belongs to the padded ones. */
function joinFullWidth(families: Map<string, { stem: string; width: number; numbers: number[] }>): void {
  for (const family of [...families.values()].filter(({ width }) => width > 0)) {
    const key = `${family.stem}\u0000`;
    const bare = families.get(key);
    if (bare === undefined) continue;
    const fits = (value: number): boolean => String(value).length === family.width;
    family.numbers.push(...bare.numbers.filter(fits));
    bare.numbers = bare.numbers.filter((value) => !fits(value));
    if (bare.numbers.length === 0) families.delete(key);
  }
}

function foldFamily(stem: string, width: number, numbers: number[]): string {
  const text = (value: number): string => String(value).padStart(width, "0");
  const sorted = [...numbers].sort((left, right) => left - right);
  const ranges: string[] = [];
  let begin = sorted[0] ?? 0;
  let end = begin;
  const close = (): void => {
    ranges.push(begin === end ? text(begin) : `${text(begin)}-${text(end)}`);
  };
  for (const value of sorted.slice(1)) {
    if (value !== end + 1) {
      close();
      begin = value;
    }
    end = value;
  }
  close();
  const only = ranges.length === 1 && begin === end;
  return only ? stem + text(begin) : `${stem}[${ranges.join(",")}]`;
}

/** Most names that one text may stand for; a longer one is cut there. */
const NAMES_MAX = 20_000;

/** The names that a folded text stands for, in its order. */
export function unfoldNames(text: string): string[] {
  const names: string[] = [];
  for (const piece of splitOutside(text)) {
    const match = /^(.*)\[([\d,-]+)\]$/.exec(piece);
    if (match === null) {
      if (piece !== "") names.push(piece);
      continue;
    }
    for (const range of (match[2] ?? "").split(",")) {
      const [first = "", last = first] = range.split("-");
      for (let value = Number(first); value <= Number(last) && names.length < NAMES_MAX; value += 1) {
        names.push((match[1] ?? "") + String(value).padStart(first.length, "0"));
      }
    }
  }
  return names;
}

/** Splits at commas that are outside brackets. */
function splitOutside(text: string): string[] {
  const pieces: string[] = [];
  let depth = 0;
  let begin = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (letter === "[") depth += 1;
    else if (letter === "]") depth -= 1;
    else if (letter === "," && depth === 0) {
      pieces.push(text.slice(begin, at));
      begin = at + 1;
    }
  }
  pieces.push(text.slice(begin));
  return pieces;
}
