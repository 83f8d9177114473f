const COLOURS: Readonly<Record<string, number>> = {
  trace: 90,
  debug: 90,
  info: 32,
  warn: 33,
  error: 31,
  fatal: 35,
};

const ALWAYS = new Set(["level", "time", "msg", "err", "pid", "hostname"]);

/** One JSON log line as people read it: `12:04:05.678 warn  the message  kind=power_shelf id=ps-1`. */
export function readableLine(line: string, colours: boolean): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line);
  } catch {
    return line;
  }
  const paint = (text: string, code: number) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
  const word = String(entry.level ?? "log");
  const colour = COLOURS[word] ?? 37;
  const time = new Date(String(entry.time)).toTimeString().slice(0, 8);
  const millis = String(new Date(String(entry.time)).getMilliseconds()).padStart(3, "0");
  const fields = Object.entries(entry)
    .filter(([key]) => !ALWAYS.has(key))
    .map(
      ([key, value]) =>
        `${paint(`${key}=`, 90)}${typeof value === "string" && !/\s/.test(value) ? value : JSON.stringify(value)}`,
    );
  const head = `${paint(`${time}.${millis}`, 90)} ${paint(word.padEnd(5), colour)} ${String(entry.msg ?? "")}`;
  return `${[head, ...fields].join("  ")}\n${stackOf(entry.err)}`;
}

function stackOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const { stack, message } = error as { stack?: unknown; message?: unknown };
  const text = String(stack ?? message ?? "");
  return text === "" ? "" : `${text.replace(/^/gm, "    ")}\n`;
}
