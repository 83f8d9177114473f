import { StepFailure } from "../../kernel/errors.ts";

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** In single quotes, where the shell takes everything as it is. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * The script with its variables before it. Servers accept few variables by request (`AcceptEnv`), so they are set in the script
 * itself, where single quotes keep a value from ever being read as anything but a value.
 */
export function scriptWithVariables(script: string, env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env).map(([name, value]) => {
    if (!VARIABLE.test(name))
      throw new StepFailure("invalid_input", `${JSON.stringify(name)} cannot name a variable of a script`);
    if (value.includes("\0")) throw new StepFailure("invalid_input", `the variable ${name} contains the NUL character`);
    return `export ${name}=${quoted(value)}\n`;
  });
  return `${lines.join("")}${script}`;
}
