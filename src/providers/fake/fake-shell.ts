/** What a script of the simplest kind would write, and how it would end. */
export interface FakeShellResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
  /** How long it would sleep in all, in seconds. */
  readonly sleeps: number;
}

const LINE =
  /^(?:(?<echo>echo (?<said>[^$`;|&<>(){}*"'\\]*?))(?<aside> >&2)?|printf '%s' "\$(?<variable>[A-Za-z_]\w*)"|sleep (?<sleep>\d+)|exit (?<exit>\d{1,3})|true)$/;

/**
 * A fake machine runs nothing. Scripts of nothing but `echo`, `printf '%s' "$NAME"`, `sleep`, `true` and `exit` are carried out
 * word by word, so that demonstrations have something to show; every other script writes nothing and succeeds.
 */
export function runInFakeShell(script: string, env: Readonly<Record<string, string>>): FakeShellResult {
  const lines = script.split("\n").map((line) => line.trim());
  const matches = lines.filter((line) => line !== "" && !line.startsWith("#")).map((line) => LINE.exec(line)?.groups);
  const result = { stdout: "", stderr: "", code: 0, sleeps: 0 };
  if (matches.includes(undefined)) return result;
  for (const match of matches) {
    if (match?.exit !== undefined) return { ...result, code: Number(match.exit) };
    if (match?.echo !== undefined) result[match.aside === undefined ? "stdout" : "stderr"] += `${match.said}\n`;
    if (match?.variable !== undefined) result.stdout += env[match.variable] ?? "";
    if (match?.sleep !== undefined) result.sleeps += Number(match.sleep);
  }
  return result;
}
