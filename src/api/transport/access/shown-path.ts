import { RPC_PATH } from "../rpc-refusals.ts";

const LONGEST_PART = 80;

/**
 * A path that no route has named, as far as a log may hold it. Queries carry tokens, and so do the later parts of some paths (seeds,
 * files for BMCs, boots): what stays is enough to say which surface was tried.
 */
export function shownPath(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? "";
  if (RPC_PATH.test(path)) return path.slice(0, 2 * LONGEST_PART);
  const [, ...parts] = path.split("/");
  const kept = /^(api|internal)$/.test(parts[0] ?? "") ? 3 : 1;
  const shown = parts.slice(0, kept).map((part) => part.slice(0, LONGEST_PART));
  return `/${shown.join("/")}${parts.length > kept ? "/…" : ""}`;
}
