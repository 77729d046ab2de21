import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

interface Props { anchor: Element | { x: number; y: number } | null; onClose: () => void; children: ComponentChildren; label?: string; menu?: boolean }

// Below its anchor, inside the window; Escape and a click elsewhere close it.
export function Popover({ anchor, onClose, children, label, menu }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current!, size = element.getBoundingClientRect();
    const at = anchor instanceof Element ? { x: anchor.getBoundingClientRect().left, y: anchor.getBoundingClientRect().bottom + 4 } : anchor ?? { x: 0, y: 0 };
    element.style.position = "fixed";
    element.style.left = `${Math.max(8, Math.min(at.x, innerWidth - size.width - 8))}px`;
    element.style.top = `${Math.max(8, Math.min(at.y, innerHeight - size.height - 8))}px`;
    element.querySelector<HTMLElement>("input, button")?.focus();
  }, [anchor]);
  useEffect(() => {
    const outside = (event: Event) => { if (!box.current?.contains(event.target as Node)) onClose(); };
    const key = (event: KeyboardEvent) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        onClose();
      } else if (menu && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        event.preventDefault();
        const buttons = [...box.current!.querySelectorAll<HTMLElement>("button")], at = buttons.indexOf(document.activeElement as HTMLElement);
        buttons[(at + (event.key === "ArrowDown" ? 1 : -1) + buttons.length) % buttons.length]?.focus();
      }
    };
    const timer = setTimeout(() => addEventListener("pointerdown", outside));
    addEventListener("keydown", key, true);
    return () => { clearTimeout(timer); removeEventListener("pointerdown", outside); removeEventListener("keydown", key, true); };
  }, [onClose, menu]);
  return <div ref={box} class={`popover ${menu ? "menu" : ""}`} role={menu ? "menu" : "dialog"} aria-label={label ?? "Options"}>{children}</div>;
}
