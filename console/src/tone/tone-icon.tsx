import type { JSX } from "react";
import { TONE_WORDS, type Tone } from "./tone.ts";

/** A shape of its own for each tone: told apart without colours, and at twelve pixels. */
const SHAPES: Readonly<Record<Tone, JSX.Element>> = {
  calm: <circle cx="6" cy="6" r="2.5" fill="currentColor" />,
  working: (
    <>
      <circle cx="6" cy="6" r="4.6" fill="none" stroke="currentColor" strokeWidth="1.6" />
      <path d="M6 1.4a4.6 4.6 0 0 1 0 9.2z" fill="currentColor" />
    </>
  ),
  waiting: <path d="M2.5 1.5h7v1.6L7 6l2.5 2.9v1.6h-7V8.9L5 6 2.5 3.1z" fill="currentColor" />,
  trouble: <path d="M6 1l5.4 10H.6z" fill="currentColor" />,
  person: <path d="M6 .6L11.4 6 6 11.4.6 6z" fill="currentColor" />,
};

export function ToneIcon({ tone, label = TONE_WORDS[tone] }: { readonly tone: Tone; readonly label?: string }) {
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" role="img" aria-label={label} style={{ flex: "none" }}>
      {SHAPES[tone]}
    </svg>
  );
}
