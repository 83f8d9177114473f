import type { Machine } from "../devices/machine.ts";
import { factoryNetplan } from "../devices/network.ts";
import { processesOf } from "./processes.ts";

const MOST_FILES = 200;
/** What a long-lived system clears away by itself, the longest untouched first. */
const TEMPORARY = "/var/tmp/";
const MOST_FILE_CHARACTERS = 64_000;

type Maker = (machine: Machine) => string | undefined;

/** Files that follow from what the machine is and does. The others were written by somebody. */
const KNOWN_FILES: Readonly<Record<string, Maker>> = {
  "/proc/sys/kernel/random/boot_id": ({ state }) => line(state.bootId),
  "/proc/version": () => "Linux version 5.15.0-generic (simulated)\n",
  "/etc/hostname": ({ spec }) => line(spec.id),
  "/etc/machine-id": (machine) => line(machineIdOf(machine)),
  "/etc/millwright-image": describeImage,
  "/etc/netplan/50-cloud-init.yaml": () => factoryNetplan,
  "/etc/os-release": () => 'PRETTY_NAME="Ubuntu 22.04.4 LTS"\nID=ubuntu\nVERSION_ID="22.04"\n',
  "/etc/kubernetes/kubelet.conf": ({ state }) =>
    state.kubelet === null ? undefined : `# joined ${state.kubelet.cluster}\n`,
  "/sys/class/dmi/id/product_uuid": ({ spec }) => line(spec.systemUuid),
  "/sys/class/dmi/id/product_serial": ({ spec }) => line(spec.serial),
  "/sys/class/dmi/id/product_name": ({ spec }) => line(spec.model),
  "/sys/class/dmi/id/bios_version": ({ firmware }) => line(firmware.version("bios") ?? ""),
  "/sys/class/net/eth0/address": ({ spec }) => line(spec.macs[0] ?? null),
  "/sys/class/net/eth1/address": ({ spec }) => line(spec.macs[1] ?? null),
};

const line = (text: string | null): string | undefined => (text === null ? undefined : `${text}\n`);

/** What the installation left on the disk about itself, one `key=value` a line. */
function describeImage({ spec, state: { os } }: Machine): string | undefined {
  if (os === null || os.source === "factory") return undefined;
  return [
    `image=${os.image}`,
    `digest=${os.digest}`,
    `machine=${spec.id}`,
    `serial=${spec.serial}`,
    `cloud_init=${os.cloudInit ?? ""}`,
    `token=${os.token ?? ""}`,
    `installed_at=${new Date(os.installedAt).toISOString()}`,
    "",
  ].join("\n");
}

/** Another one after each installation, like a real one. */
export const machineIdOf = ({ spec, state }: Machine): string =>
  `${spec.systemUuid.replaceAll("-", "").slice(0, 28)}${String(state.os?.number ?? 0).padStart(4, "0")}`;

export const readFileOf = (machine: Machine, path: string): string | undefined =>
  path === "/dev/null"
    ? ""
    : Object.hasOwn(machine.state.files, path)
      ? machine.state.files[path]
      : Object.hasOwn(KNOWN_FILES, path)
        ? KNOWN_FILES[path]?.(machine)
        : environmentOf(machine, path);

/** `/proc/<pid>/environ` of what runs in the background. */
function environmentOf(machine: Machine, path: string): string | undefined {
  const pid = /^\/proc\/(\d{1,9})\/environ$/.exec(path)?.[1];
  const process = pid === undefined ? undefined : processesOf(machine).find(Number(pid));
  return (
    process &&
    Object.entries(process.env)
      .map(([name, value]) => `${name}=${value}\0`)
      .join("")
  );
}

/** The files that a pattern with `*` and `[…]` means, in their order. */
export function filesLike(machine: Machine, pattern: string): string[] {
  const source = pattern.replace(/[.+^${}()|\\?]/g, "\\$&").replaceAll("*", "[^/]*");
  const all = [
    ...Object.keys(machine.state.files),
    ...Object.keys(KNOWN_FILES),
    ...processesOf(machine).pids.map((pid) => `/proc/${pid}/environ`),
  ];
  try {
    const like = new RegExp(`^${source}$`);
    return [...new Set(all)].filter((path) => like.test(path)).sort();
  } catch {
    return []; // a bracket that is not closed: a name like any other
  }
}

export function filesUnder(machine: Machine, directory: string): string[] {
  const prefix = `${directory.replace(/\/+$/, "")}/`;
  return [...Object.keys(machine.state.files), ...Object.keys(KNOWN_FILES)].filter((path) => path.startsWith(prefix));
}

/** False when the disk is full. Undefined removes the file. */
export function writeFileOf(machine: Machine, path: string, text: string | undefined): boolean {
  const { files } = machine.state;
  if (text === undefined) {
    if (Object.hasOwn(files, path)) machine.writeFile(path, undefined);
    return true;
  }
  if (text.length > MOST_FILE_CHARACTERS) return false;
  if (!Object.hasOwn(files, path) && Object.keys(files).length >= MOST_FILES) {
    // Files are kept in the order in which they were last written.
    const oldest = Object.keys(files).find((each) => each.startsWith(TEMPORARY));
    if (oldest === undefined) return false;
    machine.writeFile(oldest, undefined);
  }
  machine.writeFile(path, text);
  return true;
}
