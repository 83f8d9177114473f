import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { unpackDebianPackages } from "./debian-packages.ts";

/** cloud-init with the Python packages that it needs, and Ignition's own check of configs. */
const PACKAGES = [
  ...["cloud-init", "ignition", "python3-attr", "python3-certifi", "python3-chardet", "python3-charset-normalizer"],
  ...["python3-configobj", "python3-idna", "python3-jinja2", "python3-json-pointer", "python3-jsonpatch"],
  ...["python3-jsonschema", "python3-markupsafe", "python3-netifaces", "python3-oauthlib", "python3-pkg-resources"],
  ...["python3-pyrsistent", "python3-requests", "python3-serial", "python3-six", "python3-urllib3", "python3-yaml"],
];

/** What cloud-init has understood. */
export interface CloudConfigRead {
  readonly instance: string;
  readonly users: Readonly<Record<string, { readonly ssh_authorized_keys?: readonly string[] }>>;
  readonly keys: readonly string[];
  readonly files: readonly string[];
}

export interface SeedReaders {
  /** What cloud-init's own schema has against a file; empty for nothing. */
  cloudConfigFaults(file: string): string;
  readCloudConfig(directory: string, defaultUser: string): CloudConfigRead;
  /** What Ignition has against a config; empty for nothing. */
  ignitionFaults(file: string): string;
}

/** Programs of distributions that read the seeds of installations. A text says why they cannot be had. */
export function findSeedReaders(): SeedReaders | string {
  const found = unpackDebianPackages("seed-readers", PACKAGES);
  if (typeof found === "string") return found;
  const run = (program: string, ...args: string[]) =>
    spawnSync(program, args, {
      encoding: "utf8",
      env: {
        PATH: "/usr/bin:/bin:/usr/sbin:/sbin",
        PYTHONPATH: join(found.directory, "usr/lib/python3/dist-packages"),
      },
    });
  const saidBy = ({ status, stdout, stderr }: ReturnType<typeof run>) => (status === 0 ? "" : `${stdout}${stderr}`);
  return {
    cloudConfigFaults: (file) =>
      saidBy(run("/usr/bin/python3", "-m", "cloudinit.cmd.main", "schema", "--config-file", file)),
    readCloudConfig(directory, defaultUser) {
      const script = join(import.meta.dirname, "read_cloud_config.py");
      const read = run("/usr/bin/python3", script, directory, defaultUser);
      if (read.status !== 0) throw new Error(read.stderr);
      return JSON.parse(read.stdout) as CloudConfigRead;
    },
    ignitionFaults: (file) => saidBy(run(join(found.directory, "usr/bin/ignition-validate"), file)),
  };
}
