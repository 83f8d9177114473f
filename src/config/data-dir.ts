import { isAbsolute, join } from "node:path";
import { AppError } from "../kernel/errors.ts";

/** What of the machine and the user the defaults depend on; injected, so that tests need not be root. */
export interface Host {
  readonly uid: number;
  /** Of the password database: it is there even when the environment is empty. `null` for a user that has no entry (some containers). */
  readonly homedir: string | null;
  readonly cwd: string;
}

/** The XDG rules: a relative `XDG_STATE_HOME` is to be ignored; so is an empty or relative `HOME` (`env -i`, some containers). */
export function defaultDataDir(host: Host, env: Readonly<Record<string, string | undefined>>): string {
  if (host.uid === 0) return "/var/lib/millwright";
  const stateHome = env.XDG_STATE_HOME;
  if (stateHome !== undefined && isAbsolute(stateHome)) return join(stateHome, "millwright");
  const home = env.HOME;
  const base = home !== undefined && isAbsolute(home) ? home : host.homedir;
  if (base === null) {
    throw new AppError(
      "invalid_argument",
      "data_dir has no default: this user has no home directory. Set MILLWRIGHT_DATA_DIR",
      {
        field: "data_dir",
      },
    );
  }
  return join(base, ".local", "state", "millwright");
}
