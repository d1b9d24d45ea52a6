/** The accessibility tree of Chromium, as a screen reader is given it. */

import type { Page } from "playwright-core";

export interface Node {
  readonly role: string;
  readonly name: string;
  readonly value: string;
  readonly description: string;
  readonly focusable: boolean;
  readonly properties: Readonly<Record<string, unknown>>;
  /** Place in the document, the same for focus and tree. */
  readonly element: number;
  /** Roles and names of what is around it, the nearest last. */
  readonly around: readonly string[];
}

interface Told {
  readonly nodeId: string;
  readonly ignored: boolean;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
  readonly value?: { readonly value: unknown };
  readonly description?: { readonly value: string };
  readonly properties?: readonly { readonly name: string; readonly value: { readonly value: unknown } }[];
  readonly childIds?: readonly string[];
  readonly parentId?: string;
  readonly backendDOMNodeId?: number;
}

/** Everything that is told to a screen reader, in the order in which it is read. */
export async function tree(page: Page): Promise<Node[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = (await session.send("Accessibility.getFullAXTree")) as { nodes: Told[] };
  await session.detach();
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const found: Node[] = [];
  const walk = (node: Told, around: readonly string[]): void => {
    const role = node.role?.value ?? "";
    const name = (node.name?.value ?? "").trim();
    if (!node.ignored) {
      const properties = Object.fromEntries((node.properties ?? []).map((one) => [one.name, one.value.value]));
      found.push({
        role,
        name,
        around,
        properties,
        value: String(node.value?.value ?? ""),
        description: node.description?.value ?? "",
        focusable: properties["focusable"] === true && properties["disabled"] !== true,
        element: node.backendDOMNodeId ?? 0,
      });
    }
    for (const id of node.childIds ?? []) {
      const child = byId.get(id);
      if (child !== undefined)
        walk(child, node.ignored || role === "generic" ? around : [...around, `${role} ${name}`.trim()]);
    }
  };
  for (const node of nodes) if (node.parentId === undefined) walk(node, []);
  return found;
}

/** The elements that Tab reaches from the beginning of the page, in its order. */
export async function tabbed(page: Page, most: number): Promise<number[]> {
  const session = await page.context().newCDPSession(page);
  const visited: number[] = [];
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    // From here Tab begins at the top.
    window.getSelection()?.setPosition(document.body, 0);
  });
  for (let step = 0; step < most; step += 1) {
    await page.keyboard.press("Tab");
    const { result } = await session.send("Runtime.evaluate", { expression: "document.activeElement" });
    if (result.objectId === undefined || result.className === "HTMLBodyElement") break;
    const { node } = await session.send("DOM.describeNode", { objectId: result.objectId });
    if (visited.includes(node.backendNodeId)) break;
    visited.push(node.backendNodeId);
  }
  await session.detach();
  return visited;
}
