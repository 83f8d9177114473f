import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { startMaasSite } from "./maas-site.ts";

/** A MAAS client that we did not write drives the simulated MAAS, so that this is not just what we took MAAS to be. */
let site: Awaited<ReturnType<typeof startMaasSite>>;
let directory: string;
beforeAll(async () => {
  site = await startMaasSite({ hosts: 1 });
  directory = mkdtempSync(join(tmpdir(), "millwright-maas-client-"));
});
afterAll(async () => {
  await site.stop();
  rmSync(directory, { recursive: true, force: true });
});

const GOPATH = "/usr/share/gocode";
const hasGo = spawnSync("go", ["version"]).status === 0 && existsSync(`${GOPATH}/src/github.com/juju/gomaasapi`);

/** Debian's Go packages are sources in one tree, without modules. */
async function run(command: string, ...args: readonly string[]): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    GOPATH,
    GO111MODULE: "off",
    GOCACHE: join(directory, "cache"),
  };
  const child = spawn(command, args, { env, stdio: "pipe" });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(await ended, `${command} ${args.join(" ")}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

test("Juju's gomaasapi signs in, commissions a server, allocates, deploys, annotates and releases it", async ({
  skip,
}) => {
  if (!hasGo) skip("needs Debian's golang-go and golang-github-juju-gomaasapi-dev");
  const [host] = site.hosts;
  await site.control("POST", `/maas/hosts/${host?.id}/discover`, {});
  const program = join(directory, "drive-maas");
  await run("go", "build", "-o", program, join(import.meta.dirname, "third-party", "drive_maas.go"));
  const power = [host?.ipmi_address ?? "", host?.ipmi_username ?? "", host?.ipmi_password ?? ""];
  expect(JSON.parse(await run(program, site.url, site.apiKey, ...power))).toEqual({
    ...{
      refused: true,
      images: 2,
      ports: expect.any(Number),
      disks: expect.any(Number),
      boots_from: expect.any(String),
    },
    ...{ taken: true, again: true, series: "noble", addresses: 1, fleet: "gpu", owner_data_after: 0 },
  });
  const calls = await site.control<{ op: string | null; status: number }[]>("GET", "/maas/calls");
  expect(calls.map(({ op, status }) => `${op} ${status}`)).toEqual([
    "null 200",
    "commission 200",
    "allocate 200",
    "allocate 409",
    "set_owner_data 200",
    "deploy 200",
    "deploy 409",
    "release 200",
  ]);
});
