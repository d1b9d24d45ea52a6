/** Dark or light: what the person chose, else what the system says. */

import { computed, signal } from "@preact/signals";
import { show, view } from "../session/view.ts";
import { PALETTES, type Palette, type Theme } from "../strip/ramp.ts";

const systemLight = window.matchMedia("(prefers-color-scheme: light)");
const system = signal<Theme>(systemLight.matches ? "light" : "dark");
systemLight.addEventListener("change", () => {
  system.value = systemLight.matches ? "light" : "dark";
});

export const theme = computed<Theme>(() => view.value.theme ?? system.value);
export const palette = computed<Palette>(() => PALETTES[theme.value]);

export function otherTheme(): void {
  show({ theme: theme.value === "dark" ? "light" : "dark" });
}

/** The inks of the style sheet, for canvases. */
export interface Inks {
  readonly ground: string;
  readonly sheet: string;
  readonly line: string;
  readonly lineStrong: string;
  readonly ink: string;
  readonly ink2: string;
  readonly ink3: string;
  readonly water: string;
  readonly waterSoft: string;
  readonly shu: string;
  readonly kin: string;
  /** The same two as areas, which need less contrast than text. */
  readonly shuMark: string;
  readonly kinMark: string;
  readonly wakaba: string;
  readonly fuji: string;
  readonly font: string;
}

export const inks = signal<Inks | null>(null);

/** Puts the theme on the document, and reads its inks back. */
export function applyTheme(): void {
  const root = document.documentElement;
  root.dataset["theme"] = theme.value;
  const style = getComputedStyle(root);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  inks.value = {
    ground: of("--ground"),
    sheet: of("--sheet"),
    line: of("--line"),
    lineStrong: of("--line-strong"),
    ink: of("--ink"),
    ink2: of("--ink-2"),
    ink3: of("--ink-3"),
    water: of("--water"),
    waterSoft: of("--water-soft"),
    shu: of("--shu"),
    kin: of("--kin"),
    shuMark: of("--shu-mark"),
    kinMark: of("--kin-mark"),
    wakaba: of("--wakaba"),
    fuji: of("--fuji"),
    font: of("--font"),
  };
}

/** Colours of the lines of selected devices; vermilion and gold mean something else and are not among them. */
export function lineInks(of: Inks): readonly string[] {
  return [of.water, of.fuji, of.wakaba, of.ink2];
}
