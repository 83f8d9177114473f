import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT } from "../processes/process-bench.ts";

/** What an image is built with here, without a daemon and without a registry of images. */
export const missingImageTools = ["buildah", "mmdebstrap"]
  .filter((program) => spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0)
  .join(" ");

const ENV = { ...process.env, STORAGE_DRIVER: "vfs", BUILDAH_ISOLATION: "chroot" };

/** Runs buildah, and returns what it printed. */
export function buildah(...args: readonly string[]): string {
  return execFileSync("buildah", args, { env: ENV, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}

/** Debian's own packages and the Node of this checkout, in place of an image that cannot be fetched here. */
export function makeNodeImage(directory: string, name: string): void {
  const tarball = join(directory, "debian.tar");
  execFileSync("mmdebstrap", ["--variant=minbase", "--include=ca-certificates", "bookworm", tarball], {
    stdio: "ignore",
  });
  const container = buildah("from", "scratch");
  const npm = dirname(dirname(realpathSync(execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim())));
  const node = readdirSync(join(ROOT, "node_modules")).find((each) => each.startsWith("node-linux-")) ?? "";
  buildah("add", "--quiet", container, tarball, "/");
  buildah("copy", "--quiet", container, join(ROOT, "node_modules", node, "bin", "node"), "/usr/local/bin/node");
  buildah("copy", "--quiet", container, npm, "/usr/local/lib/node_modules/npm");
  buildah("run", container, "--", "ln", "-s", "../lib/node_modules/npm/bin/npm-cli.js", "/usr/local/bin/npm");
  buildah("commit", "--quiet", container, name);
  buildah("rm", container);
}

/** The image of deploy/container, built with the npm and apt configuration of the host. */
export function makeServerImage(base: string, name: string, commit: string): void {
  const authorities = process.env.NODE_EXTRA_CA_CERTS ?? "/etc/ssl/certs/ca-certificates.crt";
  buildah(
    ...["bud", "--layers"],
    ...["--volume", `${join(homedir(), ".npmrc")}:/root/.npmrc:ro`],
    ...["--volume", `${authorities}:/usr/local/share/authorities.crt:ro`],
    ...["--volume", "/etc/apt/apt.conf.d:/etc/apt/apt.conf.d:ro"],
    ...["--env", "NODE_EXTRA_CA_CERTS=/usr/local/share/authorities.crt"],
    ...["--build-arg", `NODE_IMAGE=${base}`, "--build-arg", `SOURCE_COMMIT=${commit}`],
    ...["--file", join(ROOT, "deploy", "container", "Dockerfile"), "--tag", name, ROOT],
  );
}
