// What every drawn view needs: how large its box is, and a canvas as sharp as the screen.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export function useSize(): [RefObject<HTMLDivElement | null>, number, number] {
  const box = useRef<HTMLDivElement>(null), [size, setSize] = useState<[number, number]>([0, 0]);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setSize([Math.floor(entry.contentRect.width), Math.floor(entry.contentRect.height)]));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return [box, size[0], size[1]];
}

export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const ctx = canvas.getContext("2d")!;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
}
