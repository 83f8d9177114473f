/** A module of the kernel: a driver, as it says of itself. */
export interface KernelModule {
  /** With underscores: `virtio_net`. */
  readonly name: string;
  readonly depends: readonly string[];
  /** Patterns of the hardware that it drives. */
  readonly aliases: readonly string[];
  /** The kernel that it fits: `6.1.0-50-amd64`. */
  readonly release: string;
  readonly data: Uint8Array;
}

/** What servers have: drivers of network cards and of what disks hang on. Those that a kernel does not have are left out. */
export const USUAL_MODULES: readonly string[] = [
  ...["virtio_pci", "virtio_net", "virtio_blk", "virtio_scsi", "vmxnet3", "hv_netvsc", "ena"],
  ...[
    "e1000",
    "e1000e",
    "igb",
    "igc",
    "ixgbe",
    "i40e",
    "ice",
    "tg3",
    "bnx2x",
    "bnxt_en",
    "mlx4_en",
    "mlx5_core",
    "r8169",
  ],
  ...["nvme", "ahci", "ata_piix", "sd_mod", "megaraid_sas", "mpt3sas", "hpsa", "smartpqi", "aacraid", "usb_storage"],
  ...["xhci_pci", "ehci_pci"],
  // For the steps that write into a filesystem.
  ...["ext4", "xfs", "vfat", "nls_cp437", "nls_iso8859_1", "nls_ascii"],
];

/** Reads what a module says of itself: NUL-ended texts of the form `key=value`. */
export function readModule(fileName: string, data: Uint8Array): KernelModule {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
  const said = (key: string) =>
    [...text.matchAll(new RegExp(`(?:^|\\0)${key}=([^\\0]*)\\0`, "g"))].map(([, value = ""]) => value);
  return {
    name: moduleName(fileName),
    depends: (said("depends")[0] ?? "")
      .split(",")
      .filter((each) => each !== "")
      .map(moduleName),
    aliases: said("alias"),
    release: (said("vermagic")[0] ?? "").split(" ")[0] ?? "",
    data,
  };
}

/** `kernel/drivers/net/virtio-net.ko.xz` → `virtio_net`. */
export const moduleName = (fileName: string): string =>
  fileName
    .replace(/^.*\//, "")
    .replace(/\.ko(\.(xz|zst|gz))?$/, "")
    .replaceAll("-", "_");

/** Those that are wanted, with all that they need: what is needed comes first. */
export function withDependencies(
  wanted: readonly string[],
  find: (name: string) => KernelModule | undefined,
): readonly KernelModule[] {
  const chosen = new Map<string, KernelModule>();
  const visiting = new Set<string>();
  const visit = (name: string) => {
    const module = find(name);
    // Absent: it is built into the kernel.
    if (module === undefined || visiting.has(name)) return;
    visiting.add(name);
    for (const each of module.depends) visit(each);
    chosen.set(name, module);
  };
  for (const name of wanted) visit(name);
  return [...chosen.values()];
}

/** `modules.dep`, by which modprobe finds what a module needs. */
export function dependencyTable(modules: readonly KernelModule[]): string {
  const present = new Map(modules.map((module) => [module.name, module]));
  const allOf = ({ name }: KernelModule) =>
    withDependencies([name], (each) => present.get(each)).filter((each) => each.name !== name);
  return modules
    .map(
      (module) =>
        `${module.name}.ko:${allOf(module)
          .toReversed()
          .map(({ name }) => ` ${name}.ko`)
          .join("")}\n`,
    )
    .join("");
}

/** `modules.alias`, by which modprobe finds the driver of a device. */
export const aliasTable = (modules: readonly KernelModule[]): string =>
  modules.flatMap(({ name, aliases }) => aliases.map((alias) => `alias ${alias} ${name}\n`)).join("");
