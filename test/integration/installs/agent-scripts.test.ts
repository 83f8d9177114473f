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
  const sources = ["words", "report", "devices", "image", "erase", "partition", "steps"].map(
    (name) => `. ${agent}/${name}.sh`,
  );
  // A plain file has no drivers, and nobody hears of progress here.
  const script = ["set -u", ...sources, "progress() { :; }", lines].join("\n");
  const child = spawn(busybox ?? "", ["sh", "-c", script], {
    env: {
      PATH: join(directory, "bin"),
      CMDLINE_FILE: join(work, "cmdline"),
      WORK: work,
      HERE: agent,
      // This machine's own disks must never be found.
      SYS_BLOCK: join(directory, "no-disks"),
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

/** Lines of shell, for a computer with so much to do that a session begins only when it should have ended already. */
const slowly = (which: "timer" | "one-step"): string =>
  `setsid() { case "$*" in *${which}*) sleep 3 ;; esac; exec ${busybox} setsid "$@"; }`;

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

    test("copies a disk whose digest nobody knows, and reads back what it wrote", async () => {
      const disk = newDisk();
      const { code, output } = await install(`${api.url}/files/disk.img`, "", disk.path);
      expect(code, output).toBe(0);
      expect(disk.now().subarray(0, IMAGE.length).equals(IMAGE)).toBe(true);
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

    test("cuts words before it escapes them", async () => {
      const { output } = await run(`printf '"%s"' "$(json_text 'ab"c' 3)"`);
      expect(JSON.parse(output)).toBe('ab"');
    });

    test("overwrites a disk that knows no quicker way, to its last byte, and reads it back", async () => {
      const disk = newDisk(3 * MIB + 1_536);
      const { output } = await run(`erase_disk no-such-disk '${disk.path}'; echo "$method $verified"`);
      expect(output.trimEnd()).toMatch(/overwrite true$/);
      expect(disk.now().every((byte) => byte === 0)).toBe(true);
      expect(disk.now()).toHaveLength(disk.before.length);
    });

    test("writes a partition table that others read", async () => {
      const disk = newDisk(64 * MIB);
      const lines = ["16 83 80", "0 82 00"].join("\n");
      const { code, output } = await run(
        `printf '%s' '${lines}' >"$WORK/wanted"; write_partitions '${disk.path}' "$WORK/wanted" || { echo "$why"; exit 1; }`,
      );
      expect(code, output).toBe(0);
      const { stdout } = spawnSync(busybox ?? "", ["fdisk", "-l", disk.path], { encoding: "utf8" });
      expect(stdout).toMatch(/disk-\d+p1 *\* .*\s2048\s+34815\s+32768 16\.0M 83 Linux/);
      expect(stdout).toMatch(/disk-\d+p2 .*\s34816\s+131071\s+96256 47\.0M 82 Linux swap/);
      expect(disk.now().subarray(512).equals(disk.before.subarray(512))).toBe(true);
      const tooLarge = await run(
        `echo '65 83 00' >"$WORK/wanted"; write_partitions '${disk.path}' "$WORK/wanted" || echo "why: $why"`,
      );
      expect(tooLarge.output).toContain("why: the partitions do not fit");
    });

    describe("with steps", () => {
      const steps = (...list: object[]) =>
        list.map((step, index) => ({ sequence: index + 1, name: `step-${index + 1}`, ...step }));

      /** Approves a node for the steps, boots it, and lets the agent's scripts do the rest. */
      async function carryOut(name: string, list: object[], disk = newDisk()) {
        const { id, mac_address: mac } = await api.register();
        const boot = { method: "kernel", kernel_url: "/files/disk.img", environment: true };
        await api.ask("POST", "/api/v1/workflows", { id: name, name, boot, steps: list });
        await api.move(id, "pending", { workflow_id: name });
        const agent = async (before = "") => {
          const script = (await api.call("GET", `/api/v1/boot?mac=${mac}`, undefined, { as: null })).text;
          const token = /millwright\.token=(\S+)/.exec(script)?.[1] ?? "";
          return run(
            `${before}
             resumes=false; fetch_steps || { echo "$why"; exit 3; }
             [ "$resumes" = true ] || report started '"installation_status":"started"' || exit 4
             run_steps && exit 0
             report failed "\\"installation_status\\":\\"failed\\",\\"installation_error\\":\\"$(json_text "$why")\\""; exit 1`,
            { server: api.url, mac, token, node: id, target: disk.path },
          );
        };
        const seen = () => api.ask<Node>("GET", `/api/v1/nodes/${id}`);
        return { id, disk, agent, seen };
      }

      test("carries each out, in order, and reports it", async () => {
        const { agent, seen, disk } = await carryOut("all-good", [
          ...steps(
            { type: "partition", config: { partitions: [{}] } },
            { type: "script", config: { script: 'echo "on $MILLWRIGHT_TARGET"' } },
            { type: "wait", config: { seconds: 0, url: "/files/disk.img" } },
            { type: "reboot", next_state: "active" },
          ),
        ]);
        const ran = await agent();
        expect(ran.code, ran.output).toBe(0);
        expect(await seen()).toMatchObject({
          installation_progress: 100,
          installation_steps: [
            { sequence: 1, type: "partition", state: "completed", attempts: 1 },
            { sequence: 2, state: "completed", message: `on ${disk.path}` },
            { sequence: 3, state: "completed" },
            { sequence: 4, state: "completed" },
          ],
        });
        expect((await seen()).state).toMatch(/^(installed|active)$/);
      });

      test("tries again after a delay, ends what takes too long, and goes on behind what may be skipped", async () => {
        const { agent, seen } = await carryOut("retries", [
          ...steps(
            {
              type: "script",
              config: { script: 'test -e "$WORK/again" || { : >"$WORK/again"; echo not yet; exit 3; }' },
              on_failure: "retry",
              max_retries: 2,
              retry_delay: 1,
            },
            { type: "script", config: { script: "sleep 60" }, timeout: 1, on_failure: "skip" },
            { type: "script", config: { script: "true" } },
          ),
        ]);
        const ran = await agent();
        expect(ran.code, ran.output).toBe(0);
        expect(await seen()).toMatchObject({
          state: "installed",
          installation_steps: [
            { state: "completed", attempts: 2 },
            { state: "skipped", message: "not done within 1 s" },
            { state: "completed" },
          ],
        });
      });

      test("is not kept by the timer of a step that was done before the timer had begun", async () => {
        const { agent, seen } = await carryOut("late-timer", [
          ...steps({ type: "script", config: { script: "true" }, timeout: 3_600 }),
        ]);
        const ran = await agent(slowly("timer"));
        expect(ran.code, ran.output).toBe(0);
        expect(await seen()).toMatchObject({ installation_steps: [{ state: "completed" }] });
      });

      test("ends a step that begins when its time is over", async () => {
        const { agent, seen } = await carryOut("late-step", [
          ...steps({ type: "script", config: { script: "sleep 3600" }, timeout: 1, on_failure: "skip" }),
        ]);
        const ran = await agent(slowly("one-step"));
        expect(ran.code, ran.output).toBe(0);
        expect(await seen()).toMatchObject({
          installation_steps: [{ state: "skipped", message: "not done within 1 s" }],
        });
      });

      test("undoes what it did when a step says so, and leaves nothing that boots", async () => {
        const { agent, seen, disk } = await carryOut("rolls-back", [
          ...steps(
            { type: "partition", config: { partitions: [{}] } },
            { type: "script", config: { script: ': >"$WORK/made"', rollback: 'rm "$WORK/made"' } },
            { type: "script", config: { script: "echo out of luck; exit 9" }, on_failure: "rollback" },
          ),
        ]);
        const ran = await agent();
        expect(ran.code, ran.output).toBe(1);
        expect(await seen()).toMatchObject({
          state: "installing",
          install_attempts: 1,
          last_install_error: "step 3 (step-3): the script ended with 9: out of luck",
          installation_steps: [{ state: "completed" }, { state: "rolled_back" }, { state: "failed", attempts: 1 }],
        });
        expect(
          disk
            .now()
            .subarray(0, MIB)
            .every((byte) => byte === 0),
        ).toBe(true);
      });

      describe("a rollback blanks what the installation has begun, and nothing else:", () => {
        /** As a workflow may name it: below /dev. */
        const deviceOf = ({ path }: { path: string }) => `/dev/..${path}`;
        const isUntouched = ({ before, now }: ReturnType<typeof newDisk>) => now().equals(before);
        const isBlanked = ({ now }: ReturnType<typeof newDisk>) =>
          now()
            .subarray(0, MIB)
            .every((byte) => byte === 0);
        const failing = { type: "script", config: { script: "exit 9" }, on_failure: "rollback" };
        const goesWrong = { on_failure: "rollback", config: { partitions: [{ size_mib: 4_000 }] } };

        test("no disk where the failed step wrote nothing", async () => {
          const other = newDisk();
          const { agent, disk } = await carryOut("nothing-begun", [
            ...steps(
              { type: "script", config: { script: "true", rollback: "true" } },
              { type: "partition", ...goesWrong, config: { ...goesWrong.config, device: deviceOf(other) } },
            ),
          ]);
          const ran = await agent();
          expect(ran.output).toContain("the partitions do not fit");
          expect(isUntouched(disk)).toBe(true);
          expect(isUntouched(other)).toBe(true);
        });

        test("the disk of the failed step, and not that of the first", async () => {
          const other = newDisk();
          const device = deviceOf(other);
          const { agent, disk } = await carryOut("other-begun", [
            ...steps(
              { type: "script", config: { script: "true" } },
              { type: "partition", config: { device, partitions: [{}] } },
              { type: "partition", ...goesWrong, config: { ...goesWrong.config, device } },
            ),
          ]);
          expect((await agent()).code).toBe(1);
          expect(isUntouched(disk)).toBe(true);
          expect(isBlanked(other)).toBe(true);
        });

        test("the disk that a script has made bootable", async () => {
          const { agent, disk } = await carryOut("script-begun", [
            ...steps(
              { type: "script", config: { script: 'printf boots | dd of="$MILLWRIGHT_TARGET" conv=notrunc' } },
              failing,
            ),
          ]);
          expect((await agent()).code).toBe(1);
          expect(isBlanked(disk)).toBe(true);
        });

        test("the disk that was partitioned before a reboot", async () => {
          const { agent, disk } = await carryOut("begun-before-reboot", [
            ...steps({ type: "partition", config: { partitions: [{}] } }, { type: "reboot" }, failing),
          ]);
          expect((await agent()).code).toBe(0);
          expect(isBlanked(disk)).toBe(false);
          const again = await agent();
          expect(again.code, again.output).toBe(1);
          expect(isBlanked(disk)).toBe(true);
        });
      });

      test("takes a step for done whatever its last line says", async () => {
        const { agent, seen } = await carryOut("long-line", [
          // The 255th character is one that JSON escapes; a line without end is cut.
          ...steps(
            { type: "script", config: { script: `printf '%254s"tail' ''` } },
            { type: "script", config: { script: `printf '%254s\\\\tail' ''` } },
            { type: "script", config: { script: `printf '%200000s' x; exit 1` } },
          ),
        ]);
        const ran = await agent();
        expect(ran.output).not.toContain("was not taken");
        const blanks = " ".repeat(254);
        expect(await seen()).toMatchObject({
          last_install_error: expect.stringContaining("the script ended with 1"),
          installation_steps: [
            { state: "completed", message: `${blanks}"` },
            { state: "completed", message: `${blanks}\\` },
            { state: "failed" },
          ],
        });
      });

      test("goes on behind a reboot, in the same attempt", async () => {
        const { agent, seen } = await carryOut("reboots", [
          ...steps(
            { type: "script", config: { script: "true" } },
            { type: "reboot" },
            { type: "script", config: { script: "echo after" } },
          ),
        ]);
        expect((await agent()).code).toBe(0);
        expect(await seen()).toMatchObject({
          state: "installing",
          installation_steps: [{ state: "completed" }, { state: "rebooting" }, { state: "pending" }],
        });
        const again = await agent();
        expect(again.code, again.output).toBe(0);
        expect(again.output).not.toContain("step 1,");
        expect(await seen()).toMatchObject({
          state: "installed",
          install_attempts: 0,
          installation_steps: [{ state: "completed", attempts: 1 }, { state: "completed" }, { message: "after" }],
        });
      });
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
