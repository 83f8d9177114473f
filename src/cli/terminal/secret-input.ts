import { readTextFile } from "../client/discover-server.ts";
import { UsageError } from "../client/errors.ts";
import type { Session } from "../client/session.ts";

export interface PasswordOptions {
  readonly bmcPasswordFile?: string;
  readonly bmcPasswordStdin?: boolean;
}

/**
 * The BMC password from a file, standard input, the environment or a question on the terminal. There is no option that takes it
 * as it is: command lines are seen by every user of the machine and kept in shell histories.
 */
export async function readBmcPassword(
  session: Session,
  options: PasswordOptions,
  need: "required" | "if-given",
): Promise<string | undefined> {
  const { env, stdin } = session.terminal;
  if (options.bmcPasswordFile !== undefined && options.bmcPasswordStdin) {
    throw new UsageError("--bmc-password-file and --bmc-password-stdin exclude each other");
  }
  if (options.bmcPasswordFile !== undefined) {
    const text = readTextFile(options.bmcPasswordFile);
    if (text === undefined) throw new UsageError(`--bmc-password-file: ${options.bmcPasswordFile} does not exist`);
    return firstLine(text, "--bmc-password-file");
  }
  if (options.bmcPasswordStdin) return firstLine(await stdin.readAll(), "--bmc-password-stdin");
  if (env.MILLWRIGHT_BMC_PASSWORD) return env.MILLWRIGHT_BMC_PASSWORD;
  if (need === "if-given") return undefined;
  if (stdin.isTTY && session.terminal.stderr.isTTY)
    return firstLine(await stdin.ask("BMC password: ", { hidden: true }), "BMC password");
  throw new UsageError(
    "the BMC password is needed",
    "give it with --bmc-password-file, --bmc-password-stdin or MILLWRIGHT_BMC_PASSWORD",
  );
}

/** A secret from a file, or from standard input where the file is `-`: at a terminal it is asked for, and not shown. */
export async function readSecretFile(
  session: Session,
  file: string,
  { option, question }: { readonly option: string; readonly question: string },
): Promise<string> {
  const { stdin, stderr } = session.terminal;
  if (file !== "-") {
    const text = readTextFile(file);
    if (text === undefined) throw new UsageError(`${option}: ${file} does not exist`);
    return text;
  }
  return stdin.isTTY && stderr.isTTY ? stdin.ask(`${question}: `, { hidden: true }) : stdin.readAll();
}

/** Editors and echo end files with a line break, which is no part of the password. */
function firstLine(text: string, field: string): string {
  const password = text.replace(/\r?\n$/, "");
  if (password === "") throw new UsageError(`${field}: the password is empty`);
  if (/[\r\n]/.test(password)) throw new UsageError(`${field}: a password is one line`);
  return password;
}
