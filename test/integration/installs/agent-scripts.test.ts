import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { needing } from "../../support/counterparts/needing.ts";
import { ROOT } from "../../support/processes/process-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Node, startInstalls } from "./installs-under-test.ts";

/** The scripts of the environment under the shell that they are written for, with a file in the place of a disk. */
const MIB = 1_048_576;
const IMAGE = randomBytes(3 * MIB + 4_321);
const DIGEST = `sha256:${createHash("sha256").update(IMAGE).digest("hex")}`;
const busybox = ["/bin/busybox", "/usr/bin/busybox"].find(
  (path) => existsSync(path) && spawnSync(path, ["nc", "--help"], { encoding: "utf8" }).stderr.includes("nc "),
);

let directory: string;
let api: InstallsUnderTest;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-agent-"));
  for (const name of ["bin", "files"]) mkdirSync(join(directory, name));
  writeFileSync(join(directory, "files", "disk.img"), IMAGE);
  if (busybox !== undefined) spawnSync(busybox, ["--install", "-s", join(directory, "bin")]);
  api = await startInstalls({ filesDirectory: join(directory, "files") });
});
afterAll(async () => {
  await api.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Ran {
  readonly code: number | null;
  readonly output: string;
}

/** Runs lines of shell with all scripts at hand, as the agent does. */
async function run(lines: string, words: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const work = mkdtempSync(join(directory, "work-"));
  writeFileSync(
    join(work, "cmdline"),
    Object.entries(words)
      .map(([name, value]) => `millwright.${name}=${value}`)
      .join(" "),
  );
  const agent = join(ROOT, "netboot", "agent");
  const sources = ["words", "report", "devices", "image", "erase"].map((name) => `. ${agent}/${name}.sh`);
  // A plain file has no drivers, and nobody hears of progress here.
  const script = ["set -u", ...sources, "progress() { :; }", lines].join("\n");
  const child = spawn(busybox ?? "", ["sh", "-c", script], {
    env: {
      PATH: join(directory, "bin"),
      CMDLINE_FILE: join(work, "cmdline"),
      WORK: work,
      PIECE_MIB: "1",
      RETRY_PAUSE: "0",
      REPORT_TRIES: "1",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

let disks = 0;
/** A file full of what was there before. */
function newDisk(bytes = 5 * MIB): { path: string; before: Buffer; now: () => Buffer } {
  const path = join(directory, `disk-${++disks}`);
  const before = randomBytes(bytes);
  writeFileSync(path, before);
  return { path, before, now: () => readFileSync(path) };
}

const install = (url: string, digest: string, disk: string) =>
  run(`install_image '${url}' '${digest}' '${disk}' || { echo "why: $why"; exit 1; }`);

describe.skipIf(busybox === undefined)(
  needing("the environment", busybox === undefined ? "busybox-static" : ""),
  () => {
    test("writes an image, piece by piece, and leaves what lies behind it", async () => {
      const disk = newDisk();
      const { code, output } = await install(`${api.url}/files/disk.img`, DIGEST, disk.path);
      expect(code, output).toBe(0);
      expect(disk.now().subarray(0, IMAGE.length).equals(IMAGE)).toBe(true);
      expect(disk.now().subarray(IMAGE.length).equals(disk.before.subarray(IMAGE.length))).toBe(true);
    });

    test("never makes a disk bootable with an image that is not what it should be", async () => {
      const disk = newDisk();
      const { code, output } = await install(`${api.url}/files/disk.img`, `sha256:${"0".repeat(64)}`, disk.path);
      expect(code).toBe(1);
      expect(output).toContain(`why: the image has the digest ${DIGEST}, not sha256:000`);
      expect(disk.now().subarray(0, MIB).equals(disk.before.subarray(0, MIB))).toBe(true);
    });

    test("touches nothing when the image does not fit, or is not there", async () => {
      const disk = newDisk(2 * MIB);
      const tooLarge = await install(`${api.url}/files/disk.img`, DIGEST, disk.path);
      expect(tooLarge).toMatchObject({
        code: 1,
        output: expect.stringContaining(`the image has ${IMAGE.length} bytes`),
      });
      const missing = await install(`${api.url}/files/nothing`, DIGEST, disk.path);
      expect(missing).toMatchObject({ code: 1, output: expect.stringContaining("404") });
      expect(disk.now().equals(disk.before)).toBe(true);
    });

    test("goes on where it was when a connection breaks", async () => {
      const seen = new Map<string, number>();
      const fragile = await serve((range, end) => {
        const times = (seen.get(range) ?? 0) + 1;
        seen.set(range, times);
        // Each range breaks in its middle the first time.
        return times === 1 ? Math.floor(end / 2) : end;
      });
      try {
        const disk = newDisk();
        const { code, output } = await install(`http://127.0.0.1:${portOf(fragile)}/x`, DIGEST, disk.path);
        expect(code, output).toBe(0);
        expect([...seen.values()].every((times) => times === 2)).toBe(true);
        expect(disk.now().subarray(0, IMAGE.length).equals(IMAGE)).toBe(true);
      } finally {
        fragile.close();
      }
    });

    test("reports so that the server understands, whatever the words", async () => {
      const { id, mac_address: mac } = await api.register();
      await api.move(id, "pending");
      const words = { server: api.url, mac, token: "any" };
      const why = `disk "a\\b" is gone; 'really' $HOME`;
      const { code, output } = await run(
        `report started '"installation_status":"started"' || exit 1
       why=$(cat <<'END'
${why}
END
)
       report failed "\\"installation_status\\":\\"failed\\",\\"installation_error\\":\\"$(json_text "$why")\\""`,
        words,
      );
      expect(code, output).toBe(0);
      expect(await api.ask<Node>("GET", `/api/v1/nodes/${id}`)).toMatchObject({
        state: "installing",
        install_attempts: 1,
        last_install_error: why,
      });
    });

    test("leaves the disks alone unless the server took its start for one", async () => {
      const { id, mac_address: mac } = await api.register();
      const words = { server: api.url, mac, token: "any" };
      const start = (name: string) =>
        run(
          `report ${name} '"installation_status":"started"' || exit 1; if may_install; then exit 7; else exit 8; fi`,
          words,
        );
      // Nobody has approved it.
      expect(await start("early")).toMatchObject({ code: 8 });
      await api.move(id, "pending");
      expect(await start("started")).toMatchObject({ code: 7 });
    });

    test("says of itself what the firmware knows, as JSON", async () => {
      const { output } = await run("ADDRESS=10.0.0.7; who_am_i");
      expect(JSON.parse(`{${output}}`)).toMatchObject({ ip_address: "10.0.0.7", vendor: expect.any(String) });
    });

    test("overwrites a disk that knows no quicker way, to its last byte, and reads it back", async () => {
      const disk = newDisk(3 * MIB + 1_536);
      const { output } = await run(`erase_disk no-such-disk '${disk.path}'; echo "$method $verified"`);
      expect(output.trimEnd()).toMatch(/overwrite true$/);
      expect(disk.now().every((byte) => byte === 0)).toBe(true);
      expect(disk.now()).toHaveLength(disk.before.length);
    });

    test.each([0, 2 * MIB - 1, 4 * MIB - 1])(
      "does not take a disk for blank that holds a byte in a sample at %i",
      async (at) => {
        const path = newDisk(4 * MIB).path;
        const almost = Buffer.alloc(4 * MIB);
        almost[at] = 1;
        writeFileSync(path, almost);
        expect((await run(`is_blank '${path}'`)).code).toBe(1);
        writeFileSync(path, Buffer.alloc(4 * MIB));
        expect((await run(`is_blank '${path}'`)).code).toBe(0);
      },
    );
  },
);

test("the scripts can be run here", ({ skip }) => {
  if (busybox === undefined) skip("needs Debian's busybox-static");
  expect(busybox).toMatch(/busybox$/);
});

/** Serves ranges of the image, each cut short after as many bytes as `length` says. */
async function serve(length: (range: string, whole: number) => number): Promise<Server> {
  const server = createServer(({ headers: { range = "" } }, answer) => {
    const [, first = "", last = ""] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
    const body = IMAGE.subarray(Number(first), Number(last) + 1);
    answer.writeHead(206, { "content-length": body.length, "content-range": `bytes ${first}-${last}/${IMAGE.length}` });
    const sent = length(range, body.length);
    if (sent === body.length) answer.end(body);
    else answer.write(body.subarray(0, sent), () => answer.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
