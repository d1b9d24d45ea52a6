/**
 * Text of others made fit for the page: names come from devices and files. Preact writes them as text, never as
 * markup; what it does not do is show characters that turn the direction of writing round or cannot be seen.
 */
import { Fragment, options } from "preact";

/** The set of `cli/src/printable.rs`, without tab and line feed, which are blanks on a page. */
const UNFIT =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: a single character each, which the rule takes for joined ones.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Attributes that people read. */
const READ = ["title", "aria-label", "placeholder", "alt"] as const;

/** The text with such characters shown as `\u{202e}`. */
export function fit(text: string): string {
  return text.replace(UNFIT, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Makes every text fit that elements are given from now on: the one door to the page, as `output.rs` is to a terminal. */
export function fitAllText(): void {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (typeof vnode.type === "string" || vnode.type === Fragment) {
      const props = vnode.props as Record<string, unknown>;
      props["children"] = fitted(props["children"]);
      for (const name of READ) {
        if (name in props) props[name] = fitted(props[name]);
      }
    }
    before?.(vnode);
  };
}

function fitted(child: unknown): unknown {
  if (typeof child === "string") return fit(child);
  return Array.isArray(child) ? child.map(fitted) : child;
}
