import { Fragment, h, options } from "preact";
import { afterEach, describe, expect, it } from "vitest";
import { fit, fitAllText } from "./fit.ts";

const before = options.vnode;
afterEach(() => {
  if (before === undefined) delete options.vnode;
  else options.vnode = before;
});

describe("texts of others", () => {
  it.each([
    ["eth0", "eth0"],
    ["端口 é\t\n", "端口 é\t\n"],
    ["up\u202enwod\u2069", "up\\u{202e}nwod\\u{2069}"],
    ["a\u001b[2J\u009bx\u007f", "a\\u{1b}[2J\\u{9b}x\\u{7f}"],
    ["a\u200bb\u{e0041}", "a\\u{200b}b\\u{e0041}"],
  ])("%j is shown as %j", (text, shown) => expect(fit(text)).toBe(shown));

  it("are made fit in every element, also in lists, fragments and titles", () => {
    fitAllText();
    const name = "a\u202eb";
    const shown = "a\\u{202e}b";
    expect(h("td", { title: name, value: name }, name).props).toMatchObject({
      children: shown,
      title: shown,
      value: name,
    });
    expect(h("td", null, "x", name, h("b", null, name)).props.children).toMatchObject([
      "x",
      shown,
      { props: { children: shown } },
    ]);
    expect(h(Fragment, null, [name, 1, null]).props.children).toEqual([shown, 1, null]);
  });
});
