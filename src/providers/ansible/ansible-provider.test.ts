import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { fingerprintOf } from "../../capabilities/host-key.ts";
import type { Play } from "../../capabilities/local/playbooks.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import type { StreamCall } from "../../capabilities/stream.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { createAnsibleProvider } from "./ansible-provider.ts";
import { sweepPlayFiles } from "./play-files.ts";

const root = mkdtempSync(join(tmpdir(), "millwright-ansible-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A provider whose `ansible-playbook` is this shell script. */
function providerOf(name: string, script: string, path = `:${process.env.PATH}`, shownKey?: string) {
  const bin = join(root, name);
  mkdirSync(bin);
  writeFileSync(join(bin, "ansible-playbook"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, "ansible-playbook"), 0o755);
  const readHostKey = async () => {
    if (shownKey === undefined) throw new Error("the key is known");
    return shownKey;
  };
  const exec = { readHostKey };
  const { playbooks } = createAnsibleProvider({ exec, path: `${bin}${path}` }).can;
  if (playbooks === undefined) throw new Error("ansible-playbook is there");
  return playbooks;
}
const targetOf = (key: string): SshTarget => ({
  address: "127.0.0.1",
  port: 22,
  username: "root",
  credentials: { privateKey: key },
  hostKey: "ssh-ed25519 AAAA",
  jumpHosts: [],
});
function aPlay(): Play & { readonly said: () => string } {
  const said: string[] = [];
  const onOutput = (text: Uint8Array) => void said.push(Buffer.from(text).toString());
  return { ref: "a.yml", text: "[]", machineId: "m", args: {}, onOutput, said: () => said.join("") };
}
/** Ends after so many chunks, as on a cancel. */
const streamFor = (chunks: number): StreamCall => {
  const { signal } = new AbortController();
  let left = chunks;
  return {
    signal,
    subject: "test",
    mayTouchDevice: (wanted: Duration) => wanted,
    report: () => undefined,
    async sendChunk(send) {
      left -= 1;
      if (left < 0) throw new Error("canceled");
      return send(signal);
    },
  };
};
const directoriesWith = (key: string): string[] =>
  ["/dev/shm", tmpdir()].flatMap((place) =>
    (existsSync(place) ? readdirSync(place) : [])
      .filter((name) => name.startsWith("millwright-play-"))
      .map((name) => join(place, name))
      .filter((directory) => existsSync(join(directory, "key")))
      .filter((directory) => readFileSync(join(directory, "key"), "utf8").includes(key)),
  );

describe("a play on a machine that is pinned by the fingerprint of its key", () => {
  const [pinned, other] = ["ssh-ed25519 AAAA", "ssh-ed25519 BBBB"];
  const target = { ...targetOf("k0"), hostKey: fingerprintOf(pinned) };

  test("is run where the machine shows that key", async () => {
    const play = aPlay();
    const playbooks = providerOf("right-key", "echo ran", undefined, pinned);
    expect(await playbooks.run(target, play, streamFor(20))).toBe(0);
    expect(play.said()).toContain("ran");
  });

  test("is not begun where the machine shows another key", async () => {
    const play = aPlay();
    const run = providerOf("wrong-key", "echo ran", undefined, other).run(target, play, streamFor(20));
    await expect(run).rejects.toMatchObject({ code: "host_key_changed" });
    expect(play.said()).toBe("");
  });
});

describe("a play", () => {
  // Without our mark and in a session of its own: nothing tells that the process is of the play.
  const ESCAPED = "(env -i setsid sleep 8 &)";

  test("has ended when its command has, whoever still holds its output", async () => {
    const play = aPlay();
    const began = performance.now();
    const run = providerOf("leaves", `${ESCAPED}; echo done; exit 3`).run(targetOf("k1"), play, streamFor(20));
    expect(await run).toBe(3);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(play.said()).toBe("done\n");
    expect(directoriesWith("k1")).toEqual([]);
  }, 15_000);

  test("that is canceled has ended soon, whoever still holds its output", async () => {
    const began = performance.now();
    const run = providerOf("canceled", `${ESCAPED}; sleep 100`).run(targetOf("k2"), aPlay(), streamFor(1));
    await expect(run).rejects.toThrow("canceled");
    expect(performance.now() - began).toBeLessThan(6_000);
    expect(directoriesWith("k2")).toEqual([]);
  }, 15_000);
});

describe("the key of a play is removed", () => {
  test("when its supervisor cannot be started", async () => {
    const run = providerOf("no-shell", "exit 0", "").run(targetOf("k3"), aPlay(), streamFor(20));
    await expect(run).rejects.toThrow("ENOENT");
    expect(directoriesWith("k3")).toEqual([]);
  });

  test("when the rest cannot be written", async () => {
    const play = {
      ...aPlay(),
      get text(): string {
        expect(directoriesWith("k4")).toHaveLength(1);
        throw new Error("ENOSPC");
      },
    };
    const run = providerOf("full", "exit 0").run(targetOf("k4"), play, streamFor(20));
    await expect(run).rejects.toThrow("ENOSPC");
    expect(directoriesWith("k4")).toEqual([]);
  });

  test("at the next start when its server was killed, and never while that server lives", async () => {
    const abandoned = mkdtempSync(join(tmpdir(), "millwright-play-"));
    const held = mkdtempSync(join(tmpdir(), "millwright-play-"));
    for (const directory of [abandoned, held]) writeFileSync(join(directory, "key"), "k5");
    const owner = createServer().listen(join(held, "owner"));
    await once(owner, "listening");
    const code = `require("node:net").createServer().listen(${JSON.stringify(join(abandoned, "owner"))}, () => console.log("up"))`;
    const other = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "ignore"] });
    await once(other.stdout, "data");
    await sweepPlayFiles();
    expect(directoriesWith("k5").toSorted()).toEqual([abandoned, held].toSorted());
    other.kill("SIGKILL");
    await once(other, "exit");
    await sweepPlayFiles();
    expect(directoriesWith("k5")).toEqual([held]);
    owner.close();
    rmSync(held, { recursive: true });
  });
});
