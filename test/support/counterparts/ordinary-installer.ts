import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { type DebianKernel, findDebianKernel } from "./debian-kernel.ts";

/**
 * An installer as distributions have them, with nothing of ours in it: Debian's kernel, busybox and a boot loader. It reads cloud-config from a
 * volume that is labelled CIDATA, else from the root of its own medium, or from where its command line says (`ds=nocloud-net;s=…`), as cloud-init does; copies a system onto the
 * disk; gives it the files and keys that it was told; and boots it.
 */
export interface OrdinaryInstaller {
  /** Boots under BIOS from a CD. */
  readonly iso: string;
  /** For the network: kernel, initrd, and the system that the word `url=` of the command line names. */
  readonly kernel: string;
  readonly initrd: string;
  readonly system: string;
}

const PROGRAMS = ["qemu-system-x86_64", "genisoimage", "syslinux", "mcopy", "mkfs.vfat", "dropbear", "busybox", "cpio"];
const FILES = ["/usr/lib/ISOLINUX/isolinux.bin", "/usr/lib/syslinux/modules/bios/ldlinux.c32"];
const SYSTEM_MIB = 40;

/** For machines that boot from the network. */
const ROM = "/usr/lib/ipxe/qemu/pxe-virtio.rom";

/** Why there can be none here; empty when there can. */
export function whyNoOrdinaryInstaller(): string {
  const missing = [
    ...PROGRAMS.filter((program) => findProgram(program) === undefined),
    ...[...FILES, ROM].filter((file) => !existsSync(file)),
  ];
  if (missing.length > 0) return missing.join(", ");
  const kernel = findDebianKernel();
  return typeof kernel === "string" ? kernel : "";
}

const findProgram = (name: string): string | undefined =>
  ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map((place) => join(place, name)).find((path) => existsSync(path));

/** What the kernel has built in is not there. */
const MODULES = [
  ...["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"],
  ...["failover", "net_failover", "virtio_net", "virtio_blk", "scsi_common", "scsi_mod", "virtio_scsi"],
  ...["cdrom", "sr_mod", "isofs", "nls_ascii", "nls_cp437", "nls_iso8859-1", "nls_utf8", "fat", "vfat"],
];

/** Each after what it needs, as its file says: another kernel has other needs. */
function inOrder(found: ReadonlyMap<string, string>): readonly string[] {
  const ordered = new Set<string>();
  const add = (name: string): void => {
    const file = found.get(name);
    if (file === undefined || ordered.has(name)) return;
    for (const needed of neededBy(file)) add(needed);
    ordered.add(name);
  };
  for (const name of MODULES) add(name);
  return [...ordered];
}

const neededBy = (file: string): readonly string[] =>
  (/\0depends=([^\0]*)\0/.exec(readFileSync(file, "latin1"))?.[1] ?? "").split(",").filter((name) => name !== "");

const INIT = `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /mnt /cd /seed /root/.ssh /etc/dropbear /var/run /run /usr/bin /usr/sbin /sbin
/bin/busybox --install -s
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module; done
ip link set lo up
ip link set eth0 up
udhcpc -q -n -t 20 -T 1 -i eth0 -s /etc/udhcpc.sh
case "$(cat /proc/cmdline)" in
  *role=system*) exec /system ;;
  *) /install || echo "INSTALLATION FAILED"; sync; reboot -f ;;
esac
`;

const UDHCPC = `#!/bin/sh
[ "$1" = bound ] || exit 0
ip address add $ip/24 dev eth0
ip route add default via $router
`;

/** What of cloud-config it understands: ssh_authorized_keys, write_files and phone_home. */
const INSTALL = `#!/bin/sh
set -e
labelled() {
  for drive in /dev/sr*; do
    [ "$(dd if=$drive bs=1 skip=32808 count=32 2>/dev/null | tr -d ' ')" != "$1" ] || echo $drive
  done
}
from=$(sed -n 's/.*ds=nocloud-net;s=\\([^ ]*\\).*/\\1/p' /proc/cmdline)
if [ -n "$from" ]; then
  wget -q -O /tmp/user-data "\${from}user-data"
  wget -q -O /tmp/meta-data "\${from}meta-data"
  image=$(sed -n 's/.*url=\\([^ ]*\\).*/\\1/p' /proc/cmdline)
  copy() { wget -q -O /dev/vda "$image"; }
else
  mount -t iso9660 -o ro "$(labelled ORDINARY)" /cd
  seed=$(labelled CIDATA)
  if [ -n "$seed" ]; then mount -t iso9660 -o ro "$seed" /seed; else mount --bind /cd /seed; fi
  cp /seed/user-data /seed/meta-data /tmp/
  copy() { dd if=/cd/system.img of=/dev/vda bs=1M; }
fi
head -n 1 /tmp/user-data | grep -q '^#cloud-config'
grep -q '^instance-id: ' /tmp/meta-data
home=$(awk '/^[a-z]/ { at = $1 } at == "phone_home:" && $1 == "url:" { print $2 }' /tmp/user-data)
[ -z "$home" ] || wget -q -O - --post-data "instance_id=ordinary" "$home" || true
copy
sync
mount -t vfat /dev/vda /mnt
mkdir -p /mnt/files/root/.ssh
awk '/^[a-z]/ { at = $1 } at == "ssh_authorized_keys:" && $1 == "-" { sub(/^ *- /, ""); print }' /tmp/user-data > /mnt/files/root/.ssh/authorized_keys
awk '/^[a-z]/ { at = $1; next }
  at != "write_files:" { next }
  /^  - path: / { path = "/mnt/files" $3; dir = path; sub("/[^/]*$", "", dir); system("mkdir -p " dir); inside = 0; next }
  /^    content: [|]/ { inside = 1; printf "" > path; next }
  /^    [a-z]/ || /^  - / { inside = 0; next }
  inside { sub(/^      /, ""); print > path }' /tmp/user-data
umount /mnt
echo "INSTALLED"
`;

const SYSTEM = `#!/bin/sh
mount -t vfat -o ro /dev/vda /mnt
cp -r /mnt/files/. /
chmod 700 /root /root/.ssh
chmod 600 /root/.ssh/authorized_keys
echo "SYSTEM IS UP"
exec dropbear -R -E -F -s -p 22
`;

/** Makes all of it in a directory. */
export function buildOrdinaryInstaller(directory: string): OrdinaryInstaller {
  const kernel = findDebianKernel();
  if (typeof kernel === "string") throw new Error(kernel);
  mkdirSync(directory, { recursive: true });
  const initrd = buildInitrd(join(directory, "root"), kernel, join(directory, "initrd"));
  const vmlinuz = join(directory, "vmlinuz");
  copyFileSync(kernel.image, vmlinuz);
  const system = buildSystem(join(directory, "system.img"), { vmlinuz, initrd });
  return { iso: buildIso(directory, { vmlinuz, initrd, system }), kernel: vmlinuz, initrd, system };
}

function buildInitrd(root: string, kernel: DebianKernel, out: string): string {
  const write = (path: string, text: string, mode = 0o755) => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    chmodSync(file, mode);
  };
  const copy = (from: string, to = from) => {
    const file = join(root, to);
    mkdirSync(dirname(file), { recursive: true });
    copyFileSync(from, file);
  };
  for (const [path, text] of Object.entries({ init: INIT, install: INSTALL, system: SYSTEM, "etc/udhcpc.sh": UDHCPC }))
    write(path, text);
  write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", 0o644);
  write("etc/group", "root:x:0:\n", 0o644);
  write("etc/shells", "/bin/sh\n", 0o644);
  copy(findProgram("busybox") ?? "", "bin/busybox");
  symlinkSync("busybox", join(root, "bin/sh"));
  const dropbear = findProgram("dropbear") ?? "";
  copy(dropbear, "usr/sbin/dropbear");
  const libraries = execFileSync("ldd", [dropbear], { encoding: "utf8" }).matchAll(/(?:=> )?(\/\S+) \(/g);
  for (const [, library = ""] of libraries) copy(library);
  const found = modulesOf(kernel);
  const order = inOrder(found);
  for (const name of order) copy(found.get(name) ?? "", `modules/${name}.ko`);
  write("modules/order", `${order.map((name) => `${name}.ko`).join("\n")}\n`, 0o644);
  execFileSync("sh", ["-c", `find . | cpio -o -H newc --quiet | gzip -1 > ${out}`], { cwd: root });
  return out;
}

function modulesOf({ modules }: DebianKernel): ReadonlyMap<string, string> {
  const files = readdirSync(modules, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ko"));
  return new Map(files.map((file) => [basename(file, ".ko"), join(modules, file)]));
}

interface Parts {
  readonly vmlinuz: string;
  readonly initrd: string;
}

/** A disk with a boot loader, from which the installed system boots. */
function buildSystem(out: string, { vmlinuz, initrd }: Parts): string {
  const config = `${out}.cfg`;
  writeFileSync(
    config,
    "DEFAULT system\nLABEL system\nKERNEL vmlinuz\nINITRD initrd\nAPPEND console=ttyS0 quiet role=system\n",
  );
  writeFileSync(out, "");
  truncateSync(out, SYSTEM_MIB * 1_048_576);
  run("mkfs.vfat", "-n", "SYSTEM", out);
  run("mcopy", "-i", out, vmlinuz, "::vmlinuz");
  run("mcopy", "-i", out, initrd, "::initrd");
  run("mcopy", "-i", out, config, "::syslinux.cfg");
  run("syslinux", "--install", out);
  return out;
}

function buildIso(directory: string, { vmlinuz, initrd, system }: Parts & { readonly system: string }): string {
  const tree = join(directory, "cd");
  mkdirSync(join(tree, "isolinux"), { recursive: true });
  copyFileSync(vmlinuz, join(tree, "vmlinuz"));
  copyFileSync(initrd, join(tree, "initrd"));
  copyFileSync(system, join(tree, "system.img"));
  for (const file of FILES) copyFileSync(file, join(tree, "isolinux", basename(file)));
  const config = "DEFAULT install\nLABEL install\nKERNEL /vmlinuz\nINITRD /initrd\nAPPEND console=ttyS0 quiet\n";
  writeFileSync(join(tree, "isolinux", "isolinux.cfg"), config);
  const iso = join(directory, "ordinary.iso");
  run(
    ...(["genisoimage", "-quiet", "-o", iso, "-V", "ORDINARY", "-R", "-J"] as const),
    ...["-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat", "-no-emul-boot", "-boot-load-size", "4"],
    ...["-boot-info-table", tree],
  );
  return iso;
}

function run(program: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(findProgram(program) ?? program, args, { encoding: "utf8", timeout: 60_000 });
  if (status !== 0) throw new Error(`${program} failed: ${stderr}`);
}
