import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { exactTime, spanText, toMillis } from "../api/times.ts";
import { useNow } from "../live/use-now.ts";

interface AgeProps {
  readonly at: Timestamp | undefined;
  /** `12 min ago` instead of `12 min`. */
  readonly ago?: boolean;
}

/** How long ago it was, by the server's clock; the exact time on hover. */
export function Age({ at, ago = false }: AgeProps) {
  const now = useNow();
  const then = toMillis(at);
  if (then === undefined) return null;
  return (
    <time dateTime={new Date(then).toISOString()} title={exactTime(then)} style={{ whiteSpace: "nowrap" }}>
      {spanText(now - then)}
      {ago && " ago"}
    </time>
  );
}
