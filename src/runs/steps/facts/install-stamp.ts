/** What an installation leaves on the disk about itself, one `key=value` a line. */
export interface InstallStamp {
  readonly image: string;
  readonly digest: string;
  readonly machine: string;
  readonly serial: string;
  readonly token: string;
}

export const STAMP_FILE = "/etc/millwright-image";

/** As the shipped installers write it. */
export const printStamp = (stamp: InstallStamp): string =>
  Object.entries(stamp)
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");

/** Undefined for a system that was not installed by us. */
export function parseStamp(text: string | undefined): InstallStamp | undefined {
  if (text === undefined) return undefined;
  const values = new Map(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at === -1 ? [] : [[line.slice(0, at).trim(), line.slice(at + 1).trim()] as const];
    }),
  );
  const value = (name: string) => values.get(name) ?? "";
  return value("token") === ""
    ? undefined
    : {
        image: value("image"),
        digest: value("digest"),
        machine: value("machine"),
        serial: value("serial"),
        token: value("token"),
      };
}
