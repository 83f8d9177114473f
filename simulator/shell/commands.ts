import { mkdir, mv, rm, tee } from "./file-commands.ts";
import { kubeadm } from "./kubeadm-command.ts";
import { kubectl } from "./kubectl-command.ts";
import { filesUnder, readFileOf } from "./machine-files.ts";
import { ip, netplan, ping } from "./network-commands.ts";
import { aptGet, aptMark, kubelet } from "./package-commands.ts";
import { kill } from "./process-commands.ts";
import { type CommandIo, type ShellSession, waitUntil } from "./shell-session.ts";
import { systemctl } from "./systemctl-command.ts";

export interface CommandCall {
  readonly args: readonly string[];
  readonly io: CommandIo;
  readonly env: Readonly<Record<string, string>>;
  readonly session: ShellSession;
}

/** Resolves with the exit code. */
export type ShellCommand = (call: CommandCall) => number | Promise<number>;

const COMMANDS: Readonly<Record<string, ShellCommand>> = {
  true: () => 0,
  ":": () => 0,
  false: () => 1,
  echo,
  printf,
  cat,
  grep,
  cut,
  tee,
  tail,
  rm,
  mv,
  mkdir,
  tr,
  // Whatever is looked for by age: nothing here is ever old.
  find: () => 0,
  chmod: () => 0,
  sync: () => 0,
  sleep,
  test: ({ args, session }) => (isTrue(args, session) ? 0 : 1),
  "[": ({ args, session }) => (isTrue(args.slice(0, -1), session) ? 0 : 1),
  hostname: ({ io, session }) => said(io, session.machine.spec.id),
  whoami: ({ io, session }) => said(io, session.user),
  id: ({ args, io, session }) =>
    said(io, args[0] === "-u" ? (session.user === "root" ? "0" : "1000") : `uid=0(${session.user})`),
  uname: ({ args, io, session }) =>
    said(
      io,
      args[0] === "-a"
        ? `Linux ${session.machine.spec.id} 5.15.0-generic #1 SMP x86_64 GNU/Linux`
        : args[0] === "-r"
          ? "5.15.0-generic"
          : "Linux",
    ),
  date: ({ io, session }) => said(io, new Date(session.surroundings.clock.realNow()).toISOString()),
  uptime: ({ io, session }) => said(io, `up ${uptimeSeconds(session)} seconds`),
  which: ({ args, io }) => found(args, io),
  reboot: ({ session }) => down(session, "restart"),
  poweroff: ({ session }) => down(session, "off"),
  shutdown: ({ args, session }) => down(session, args.includes("-r") ? "restart" : "off"),
  systemctl,
  kubeadm,
  kubectl,
  kubelet,
  "apt-get": aptGet,
  "apt-mark": aptMark,
  netplan,
  ip,
  ping,
  kill,
};

const OF_ROOT_ALONE: ReadonlySet<string> = new Set([
  ...["apt-get", "apt-mark", "netplan", "poweroff", "reboot", "shutdown"],
  ...["kubeadm join", "kubeadm reset", "kubeadm upgrade"],
  ...["systemctl reboot", "systemctl poweroff", "systemctl restart", "systemctl start", "systemctl stop"],
  "systemctl daemon-reload",
]);

/** Others are refused it, unless they say `sudo`, which asks nobody for a password here. */
export const needsRoot = (name: string, args: readonly string[]): boolean =>
  OF_ROOT_ALONE.has(name) || OF_ROOT_ALONE.has(`${name} ${args.find((arg) => !arg.startsWith("-"))}`);

/** Undefined for all that is not known here. */
export const findCommand = (name: string): ShellCommand | undefined =>
  Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;

function said(io: CommandIo, text: string): number {
  io.out(`${text}\n`);
  return 0;
}

export const down = ({ machine }: ShellSession, next: "off" | "restart"): number => (machine.goDown(next) ? 0 : 1);

const uptimeSeconds = ({ machine, surroundings: { clock } }: ShellSession): number =>
  Math.max(0, Math.round((clock.now() - machine.state.runningSince) / 1_000));

function echo({ args, io }: CommandCall): number {
  const bare = args[0] === "-n";
  io.out(`${args.slice(bare ? 1 : 0).join(" ")}${bare ? "" : "\n"}`);
  return 0;
}

/** `%s` and `%d`; the format is used again while there are arguments, as the real one does. */
function printf({ args: [format = "", ...values], io }: CommandCall): number {
  const text = format.replaceAll("\\n", "\n").replaceAll("\\t", "\t");
  const holes = text.match(/%[sd]/g)?.length ?? 0;
  let left = [...values];
  do {
    let index = 0;
    io.out(text.replace(/%[sd%]/g, (hole) => (hole === "%%" ? "%" : (left[index++] ?? ""))));
    left = left.slice(Math.max(1, holes));
  } while (holes > 0 && left.length > 0);
  return 0;
}

async function cat({ args, io, session }: CommandCall): Promise<number> {
  if (args.length === 0) io.out(await io.stdin());
  let code = 0;
  for (const path of args) {
    const text = path === "-" ? await io.stdin() : readFileOf(session.machine, path);
    if (text !== undefined) io.out(text);
    else {
      io.error(`cat: ${path}: No such file or directory\n`);
      code = 1;
    }
  }
  return code;
}

async function grep({ args, io, session }: CommandCall): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith("-")).join("");
  const [pattern = "", ...paths] = args.filter((arg) => !arg.startsWith("-"));
  const text =
    paths.length === 0 ? await io.stdin() : paths.map((path) => readFileOf(session.machine, path) ?? "").join("");
  // A leading ^ and a trailing $ are all that is known of regular expressions.
  const [, start = "", middle = "", end = ""] = /^(\^?)(.*?)(\$?)$/s.exec(pattern) ?? [];
  const matches = (row: string) =>
    start !== "" && end !== ""
      ? row === middle
      : start !== ""
        ? row.startsWith(middle)
        : end !== ""
          ? row.endsWith(middle)
          : row.includes(middle);
  if (flags.includes("l")) return listMatching(paths, matches, { io, session });
  const rows = linesOf(text)
    .map((row) => row.replace(/\n$/, ""))
    .filter((row) => matches(row) !== flags.includes("v"));
  if (!flags.includes("q")) for (const row of rows) io.out(`${row}\n`);
  return rows.length > 0 ? 0 : 1;
}

/** `grep -l`: the files that have such a line. */
function listMatching(
  paths: readonly string[],
  matches: (row: string) => boolean,
  { io, session }: Pick<CommandCall, "io" | "session">,
): number {
  const found = paths.filter((path) => (readFileOf(session.machine, path) ?? "").split("\n").some(matches));
  for (const path of found) io.out(`${path}\n`);
  return found.length > 0 ? 0 : 1;
}

/** `-d X -f N`: one field of each line; lines without the delimiter stay whole, as with the real one. */
async function cut({ args, io }: CommandCall): Promise<number> {
  const [, delimiter = "\t", field = ""] = /^-d\s?(\S)\s-f\s?([1-9]\d*)$/.exec(args.join(" ")) ?? [];
  if (field === "") {
    io.error("cut: only -d with -f and one field is known\n");
    return 1;
  }
  for (const row of linesOf(await io.stdin())) {
    const fields = row.replace(/\n$/, "").split(delimiter);
    io.out(`${fields.length === 1 ? fields[0] : (fields[Number(field) - 1] ?? "")}\n`);
  }
  return 0;
}

/** `-c +N` from the N-th byte on, `-c N` and `-n N` the last ones. */
async function tail({ args, io, session }: CommandCall): Promise<number> {
  const [, unit = "n", from = "", count = "10"] = /-(c|n)\s?(\+?)(\d+)/.exec(args.join(" ")) ?? [];
  const path = args.findLast((arg, index) => !arg.startsWith("-") && !/^-[cn]$/.test(args[index - 1] ?? ""));
  const text = path === undefined ? await io.stdin() : readFileOf(session.machine, path);
  if (text === undefined) {
    io.error(`tail: cannot open '${path}' for reading: No such file or directory\n`);
    return 1;
  }
  const pieces: Buffer[] =
    unit === "c" ? [...Buffer.from(text)].map((byte) => Buffer.of(byte)) : linesOf(text).map((row) => Buffer.from(row));
  const first = from === "+" ? Math.max(0, Number(count) - 1) : Math.max(0, pieces.length - Number(count));
  io.out(Buffer.concat(pieces.slice(first)).toString("utf8"));
  return 0;
}

const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** `-d` and `-dc` with a set of characters and ranges; the rest of what the real one does is not known here. */
async function tr({ args: [flags = "", set = ""], io }: CommandCall): Promise<number> {
  if (!/^-(d|c)+$/.test(flags) || !flags.includes("d")) {
    io.error("tr: only -d is known\n");
    return 1;
  }
  const inSet = (char: string) =>
    [...set.replaceAll("\\n", "\n").matchAll(/(.)-(.)|[\s\S]/g)].some(([whole, from, to]) =>
      from === undefined || to === undefined ? whole === char : char >= from && char <= to,
    );
  const goes = (char: string) => inSet(char) !== flags.includes("c");
  io.out([...(await io.stdin())].filter((char) => !goes(char)).join(""));
  return 0;
}

/**
 * How many times faster than life a script sleeps at most. Whoever sleeps waits for somebody, often for one outside, whom the
 * speed of the simulation does not make any faster: a minute's grace is to be a grace at any speed.
 */
const FASTEST_SLEEP = 10;

async function sleep({ args: [duration = ""], io, session }: CommandCall): Promise<number> {
  const match = /^(\d+(?:\.\d+)?)([smh]?)$/.exec(duration);
  if (match === null) {
    io.error(`sleep: invalid time interval '${duration}'\n`);
    return 1;
  }
  const { clock } = session.surroundings;
  const unit = { "": 1_000, s: 1_000, m: 60_000, h: 3_600_000 }[match[2] as "" | "s" | "m" | "h"];
  const stretch = Math.max(1, clock.speed / FASTEST_SLEEP);
  await waitUntil(clock, clock.now() + Number(match[1]) * unit * stretch, session.signal);
  return 0;
}

function isTrue(args: readonly string[], session: ShellSession): boolean {
  const [first = "", operator, second = ""] = args;
  if (first === "!") return !isTrue(args.slice(1), session);
  switch (first) {
    case "-d":
      return filesUnder(session.machine, operator ?? "").length > 0;
    case "-e":
    case "-r":
      return (
        readFileOf(session.machine, operator ?? "") !== undefined ||
        filesUnder(session.machine, operator ?? "").length > 0
      );
    case "-f":
      return readFileOf(session.machine, operator ?? "") !== undefined;
    case "-s":
      return (readFileOf(session.machine, operator ?? "") ?? "") !== "";
    case "-n":
      return (operator ?? "") !== "";
    case "-z":
      return (operator ?? "") === "";
  }
  switch (operator) {
    case undefined:
      return first !== "";
    case "=":
    case "==":
      return first === second;
    case "!=":
      return first !== second;
    case "-eq":
      return Number(first) === Number(second);
    case "-ne":
      return Number(first) !== Number(second);
    case "-gt":
      return Number(first) > Number(second);
    case "-lt":
      return Number(first) < Number(second);
    case "-ge":
      return Number(first) >= Number(second);
    case "-le":
      return Number(first) <= Number(second);
    default:
      return false;
  }
}

function found(names: readonly string[], io: CommandIo): number {
  let code = 0;
  for (const name of names.filter((each) => !each.startsWith("-"))) {
    if (findCommand(name) === undefined) code = 1;
    else io.out(`/usr/bin/${name}\n`);
  }
  return code;
}
