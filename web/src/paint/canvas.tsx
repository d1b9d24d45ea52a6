/** A canvas as sharp as the screen, painted by the page's one painter. */

import { useEffect, useRef } from "preact/hooks";
import { onPaint, requestPaint } from "./painter.ts";

export interface Surface {
  readonly context: CanvasRenderingContext2D;
  /** CSS pixels. */
  readonly width: number;
  readonly height: number;
}

export interface CanvasProps {
  /** What is on it, for those who do not see it. */
  readonly label: string;
  readonly class?: string;
  readonly height?: number;
  /** Draws; called in every frame, so it looks itself whether anything changed. `fresh`: the canvas is empty. */
  readonly draw: (surface: Surface, fresh: boolean) => void;
  readonly onPointer?: (
    kind: "move" | "down" | "up" | "leave" | "cancel",
    event: PointerEvent,
    x: number,
    y: number,
  ) => void;
  readonly onDoubleClick?: (x: number, y: number) => void;
  readonly onWheel?: (event: WheelEvent, x: number) => void;
  readonly onKey?: (event: KeyboardEvent) => void;
}

export function Canvas(props: CanvasProps) {
  const element = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const canvas = element.current;
    const context = canvas?.getContext("2d", { alpha: true });
    if (canvas === null || context === null || context === undefined) return undefined;
    let fresh = true;
    const sizes = new ResizeObserver(() => {
      fresh = true;
      requestPaint();
    });
    sizes.observe(canvas);
    const stop = onPaint(() => {
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      if (width === 0 || height === 0) return;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        fresh = true;
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      latest.current.draw({ context, width, height }, fresh);
      fresh = false;
    });
    // Registered here because a listener that may keep the page from scrolling must say so.
    const wheel = (event: WheelEvent): void => {
      if (latest.current.onWheel === undefined) return;
      event.preventDefault();
      latest.current.onWheel(event, event.offsetX);
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    return () => {
      stop();
      sizes.disconnect();
      canvas.removeEventListener("wheel", wheel);
    };
  }, []);
  // Whoever draws decides anew after every change of what is to be drawn.
  useEffect(requestPaint);
  const pointer =
    (kind: "move" | "down" | "up" | "leave" | "cancel") =>
    (event: PointerEvent): void => {
      if (kind === "down") (event.currentTarget as HTMLCanvasElement).setPointerCapture(event.pointerId);
      latest.current.onPointer?.(kind, event, event.offsetX, event.offsetY);
    };
  const interactive = props.onKey !== undefined;
  return (
    <canvas
      ref={element}
      class={props.class ?? ""}
      style={props.height === undefined ? {} : { height: `${props.height}px` }}
      role={interactive ? "application" : "img"}
      aria-label={props.label}
      {...(interactive ? { tabIndex: 0 } : {})}
      onPointerMove={pointer("move")}
      onPointerDown={pointer("down")}
      onPointerUp={pointer("up")}
      onPointerCancel={pointer("cancel")}
      onPointerLeave={pointer("leave")}
      onDblClick={(event) => latest.current.onDoubleClick?.(event.offsetX, event.offsetY)}
      onKeyDown={(event) => latest.current.onKey?.(event)}
    />
  );
}
