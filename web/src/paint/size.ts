/** The size of an element, followed as it changes. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export function useSize<T extends HTMLElement = HTMLElement>(): [element: RefObject<T>, width: number, height: number] {
  const element = useRef<T>(null);
  const [size, setSize] = useState([0, 0]);
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return undefined;
    const measure = (): void => setSize([target.clientWidth, target.clientHeight]);
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(target);
    return () => sizes.disconnect();
  }, []);
  return [element, size[0] ?? 0, size[1] ?? 0];
}
