/** By the codes of the system: what this process, or its host, has no more of. */
const LACKS: Readonly<Record<string, string>> = {
  EMFILE:
    "this server has as many files and connections open as its process may have: raise the limit (LimitNOFILE, ulimit -n), or lower engine.concurrency",
  ENFILE: "the host of this server has as many files open as all of its processes may have together: raise fs.file-max",
};

/** In words, when a connection or a file failed for want of descriptors here: nobody at the other end is to blame. */
export function outOfFiles(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return LACKS[code] ?? outOfFiles(error.cause);
}
