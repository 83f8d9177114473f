import { useEffect, useRef } from "react";

/** Of a key press: `/`, `j`, `Enter`, `Control+k`. */
export interface KeyBinding {
  readonly key: string;
  readonly does: string;
  readonly run: (event: KeyboardEvent) => void;
  /** Also while somebody types into a field. */
  readonly inFields?: boolean;
}

interface Layer {
  readonly bindings: readonly KeyBinding[];
}

const layers: Layer[] = [];

/** Every key that works now; of two for one key the later, more special one. */
export function activeKeys(): readonly KeyBinding[] {
  const byKey = new Map(layers.flatMap(({ bindings }) => bindings).map((binding) => [binding.key, binding]));
  return [...byKey.values()];
}

/** Keys that work while the component is there. */
export function useKeys(bindings: readonly KeyBinding[]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  useEffect(() => {
    const layer: Layer = {
      get bindings() {
        return latest.current;
      },
    };
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}

/** To be called once: hands each key press to whoever has it. */
export function listenToKeys(): () => void {
  const pressed = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing) return;
    const binding = activeKeys().find(({ key }) => key === nameOf(event));
    if (!binding || (isTyping(event.target) && !binding.inFields) || isOverlaid(binding)) return;
    event.preventDefault();
    binding.run(event);
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}

function nameOf({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): string {
  if (altKey) return `Alt+${key}`;
  return ctrlKey || metaKey ? `Control+${key.toLowerCase()}` : key;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** What is below a dialog does not answer to keys. */
const isOverlaid = ({ inFields }: KeyBinding): boolean =>
  !inFields && document.querySelector('[role="dialog"][aria-modal="true"]') !== null;
