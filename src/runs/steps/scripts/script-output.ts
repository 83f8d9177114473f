import { type HeardSoFar, LOG_STREAMS, type StepLog } from "../../model/step.ts";
import { type DetachedScript, readOutput, type ScriptState } from "./detached-script.ts";

/**
 * Passes on what a script wrote since the last time, byte for byte; a character that is not whole yet waits for the rest of it.
 * Where that is, is on record with the run's log, so that any process goes on from there.
 */
export async function passOnOutput(
  script: DetachedScript,
  { log, heard }: { readonly log: StepLog; readonly heard: HeardSoFar },
  { is }: Pick<ScriptState, "is">,
): Promise<void> {
  const isOver = is === "ended" || is === "cut_off";
  for (const stream of LOG_STREAMS) {
    let from = heard.upTo(script.mark, stream);
    let broken = Buffer.alloc(0);
    let hasLeft = false;
    const say = (bytes: Buffer) => {
      // What comes after we have left is read again by the next pass.
      if (bytes.length === 0 || hasLeft) return;
      from += bytes.length;
      log(bytes, stream);
      heard.note(script.mark, stream, from);
    };
    try {
      await readOutput(script, { stream, from }, (text) => {
        const bytes = Buffer.concat([broken, text]);
        const whole = wholeCharacters(bytes);
        broken = bytes.subarray(whole);
        say(bytes.subarray(0, whole));
      });
      if (isOver) say(broken);
    } finally {
      hasLeft = true;
    }
  }
}

/** How many bytes there are until the last character of which some are still missing; what is no UTF-8 is taken as it is. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue; // goes on with a character
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
