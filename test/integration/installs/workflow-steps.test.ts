import { describe, expect, test } from "vitest";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Many, type Node, type One, startInstalls } from "./installs-under-test.ts";

const ENVIRONMENT = { method: "kernel", kernel_url: "/files/vmlinuz", initrd_url: "/files/initrd", environment: true };
const DIGEST = `sha256:${"a".repeat(64)}`;
const IMAGE = { ...ENVIRONMENT, environment: undefined, method: "image", image_url: "/files/i", image_digest: DIGEST };
/** As workflows write it. */
const variable = (name: string) => `\${${name}}`;
const script = (sequence: number, more: object = {}) => ({
  sequence,
  name: `step ${sequence}`,
  type: "script",
  config: { script: "true" },
  ...more,
});

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls({ engine: true });
});
afterAll(() => api.close());

let count = 0;
const create = (body: object) => api.call<One<object>>("POST", "/api/v1/workflows", { name: `w${++count}`, ...body });
const handedOut = async (mac: string) =>
  (await api.call("GET", `/api/v1/boot?mac=${mac}`, undefined, { as: null })).text;
const word = (text: string, name: string) => new RegExp(`millwright\\.${name}=(\\S+)`).exec(text)?.[1];

/** Approved for the workflow, and booted. */
async function booted(body: object) {
  const { id, mac_address: mac } = await api.register();
  const name = `flow-${++count}`;
  await api.ask("POST", "/api/v1/workflows", { id: name, name, ...body });
  await api.move(id, "pending", { workflow_id: name });
  const boot = await handedOut(mac);
  const token = word(boot, "token") ?? "";
  const report = (members: object) => api.report(mac, undefined, { report_token: token, ...members });
  return {
    ...{ id, mac, name, boot, token, report },
    seen: () => api.ask<Node>("GET", `/api/v1/nodes/${id}`),
    step: (sequence: number, state: string, more: object = {}) =>
      report({ installation_status: "progress", step: { sequence, state, ...more } }),
    fetchSteps: (shown = token, address = mac) =>
      api.call("POST", "/api/v1/boot/steps", { mac_address: address, report_token: shown }, { as: null }),
  };
}

test("strangers who ask for steps all at once are sent away, and a machine that asks again gets its own", async () => {
  const machine = await booted({ boot: ENVIRONMENT, steps: [script(1)] });
  const answered: number[] = [];
  // Nobody who got in is answered while the table is locked: however slow the callers are, they meet.
  const strangers = await api.db.transaction(async (tx) => {
    await tx.query("lock table installs in access exclusive mode");
    const asked = Array.from({ length: 40 }, async () => {
      const answer = await machine.fetchSteps("a guess");
      answered.push(answer.status);
      return answer;
    });
    await expect.poll(() => answered, { timeout: 20_000 }).toHaveLength(40 - 32);
    return asked;
  });
  expect(new Set(answered)).toEqual(new Set([429]));
  const answers = await Promise.all(strangers);
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(32);
  expect(answers.find(({ status }) => status === 429)?.text).toContain("ask for their steps right now");
  expect(await machine.fetchSteps()).toMatchObject({
    status: 200,
    text: expect.stringMatching(/^millwright-steps 1\n/),
  });
});

describe("a workflow", () => {
  test("in the words of the specification is accepted: other names, and what is booted in a step", async () => {
    const made = await create({
      os_family: "linux",
      architecture: "x86_64",
      boot_mode: "uefi",
      steps: [
        { sequence: 1, name: "boot", type: "boot", config: { ...ENVIRONMENT, kernel_url: undefined, url: "/files/k" } },
        { sequence: 2, name: "scan", type: "disk_scan", timeout: 60 },
        { sequence: 3, name: "cut", type: "partition", config: { partitions: [{ size_mib: 512 }, {}] } },
        script(4, { timeout: 900, on_failure: "retry", max_retries: 2, retry_delay: 5 }),
        { sequence: 5, name: "seed", type: "cloud_init", config: { user_data: "#cloud-config\n" }, on_failure: "skip" },
        { sequence: 6, name: "rest", type: "wait", config: { seconds: 5 }, on_failure: "rollback" },
        { sequence: 7, name: "again", type: "reboot", next_state: "active" },
      ],
    });
    expect(made.status, made.text).toBe(201);
    expect(made.body.data).toMatchObject({
      boot: { method: "kernel", kernel_url: "/files/k", initrd_url: "/files/initrd", environment: true },
      next_state: "active",
      steps: [
        { type: "boot", config: {}, timeout_seconds: 300, on_failure: "fail", max_retries: 0, retry_delay_seconds: 30 },
        { type: "disk_scan", timeout_seconds: 60 },
        {},
        { timeout_seconds: 900, max_retries: 2, retry_delay_seconds: 5 },
        {},
        {},
        { next_state: "active" },
      ],
    });
  });

  test.each([
    ["kernel", { ...ENVIRONMENT, environment: undefined }],
    ["chain", { method: "chain", url: "/files/x.ipxe" }],
    ["sanboot", { method: "sanboot", url: "/files/x.iso" }],
  ])("whose steps nobody would run is refused: %s", async (method, boot) => {
    const refused = await create({ boot, steps: [script(1)] });
    expect(refused).toMatchObject({ status: 400, body: { detail: expect.stringContaining(`boot.method ${method}`) } });
    expect(refused.text).toContain("nobody would run");
    // Without steps, or with the boot alone, it is one.
    expect((await create({ boot, steps: [{ sequence: 1, name: "boot", type: "boot" }] })).status).toBe(201);
  });

  test.each([
    ["two boots", 400, { boot: IMAGE, steps: [1, 2].map((sequence) => ({ sequence, name: "b", type: "boot" })) }],
    ["what is booted twice", 400, { boot: IMAGE, steps: [{ sequence: 1, name: "b", type: "boot", config: IMAGE }] }],
    ["two ends", 400, { boot: IMAGE, steps: [1, 2].map((sequence) => script(sequence, { next_state: "installed" })) }],
    ["ends that differ", 400, { boot: IMAGE, next_state: "active", steps: [script(1, { next_state: "installed" })] }],
    ["nothing to boot", 422, { steps: [script(1)] }],
    ["a boot without a kernel", 422, { steps: [{ sequence: 1, name: "b", type: "boot", config: { cmdline: "x" } }] }],
    ["a script of nothing", 422, { boot: IMAGE, steps: [script(1, { config: {} })] }],
    [
      "a config that nobody reads",
      422,
      { boot: IMAGE, steps: [script(1, { config: { script: "true", shell: "x" } })] },
    ],
    ["a clone of nothing", 422, { boot: { ...ENVIRONMENT, environment: undefined, method: "clone" } }],
    [
      "five partitions",
      422,
      {
        boot: IMAGE,
        steps: [{ sequence: 1, name: "p", type: "partition", config: { partitions: Array(5).fill({ size_mib: 1 }) } }],
      },
    ],
  ])("is refused for %s", async (_, status, body) => {
    const { total } = (await api.call<Many<object>>("GET", "/api/v1/workflows")).body;
    expect(await create(body)).toMatchObject({ status });
    expect((await api.call<Many<object>>("GET", "/api/v1/workflows")).body.total).toBe(total);
  });

  test("that versions before this one stored is read as they stored it, and they can read ours", async () => {
    const id = "from-before";
    const steps = [
      {
        sequence: 1,
        name: "theirs",
        type: "script",
        config: { any: 1 },
        timeout_seconds: 9,
        on_failure: "fail",
        max_retries: 0,
        retry_delay_seconds: 1,
        next_state: null,
      },
    ];
    await api.db.execute(
      `insert into install_workflows (id, name, os_family, architecture, boot_mode, install_method, boot, steps, created_by)
       values ($1, $1, 'linux', 'x86_64', 'any', 'kernel', $2, $3, 'kim')`,
      [id, JSON.stringify({ kernel_url: "/files/k", cmdline: "" }), JSON.stringify(steps)],
    );
    expect(await api.ask("GET", `/api/v1/workflows/${id}`)).toMatchObject({ boot: { method: "kernel" }, steps });
    // What they cannot run they take for a kernel; and a boot that they write in its place counts.
    const made = await create({
      id: "copy",
      boot: { ...ENVIRONMENT, environment: undefined, method: "clone", url: "http://10.0.0.7/sda" },
    });
    expect(made.status, made.text).toBe(201);
    const [row] = await api.db.query("select install_method, boot from install_workflows where id = 'copy'");
    expect(row).toEqual({
      install_method: "kernel",
      boot: { kernel_url: "/files/vmlinuz", initrd_url: "/files/initrd", cmdline: "" },
    });
    expect(await api.ask("GET", "/api/v1/workflows/copy")).toMatchObject({
      boot: { method: "clone", source_url: "http://10.0.0.7/sda" },
    });
    await api.db.execute(
      `update install_workflows set boot = '{"kernel_url": "/files/other", "cmdline": ""}' where id = 'copy'`,
    );
    expect(await api.ask("GET", "/api/v1/workflows/copy")).toMatchObject({
      boot: { method: "kernel", kernel_url: "/files/other" },
    });
  });
});

describe("the boot script", () => {
  test.each([
    [
      "chain",
      { method: "chain", chain_url: `${variable("server")}/files/x.ipxe?t=${variable("token")}` },
      /^chain .*x\.ipxe\?t=(\S+) /m,
    ],
    [
      "sanboot",
      { method: "sanboot", iso_url: `http://10.0.0.9/${variable("node_id")}.iso?t=${variable("token")}` },
      /^sanboot .*\.iso\?t=(\S+) /m,
    ],
  ])("gives the token of the boot to %s", async (_, boot, pattern) => {
    const { boot: text, mac, seen } = await booted({ boot });
    const token = pattern.exec(text)?.[1];
    expect(token, text).toMatch(/^[\w-]{22}$/);
    await api.report(mac, "started", { report_token: token });
    expect((await seen()).state).toBe("installing");
  });

  test("of a clone names its source, and no digest where none is known", async () => {
    const { boot } = await booted({
      boot: {
        ...IMAGE,
        image_url: undefined,
        image_digest: undefined,
        method: "clone",
        source_url: "http://10.0.0.7/sda",
      },
    });
    expect(word(boot, "image")).toBe("http://10.0.0.7/sda");
    expect(word(boot, "digest")).toBeUndefined();
  });
});

describe("steps", () => {
  test("are given to who shows the token of the boot, and to nobody else", async () => {
    const { fetchSteps, boot, token } = await booted({
      boot: IMAGE,
      steps: [
        script(1, {
          config: { url: `/files/note.sh?node=${variable("node_id")}`, rollback: "secret" },
          timeout: 60,
          on_failure: "rollback",
          max_retries: 2,
          retry_delay: 5,
        }),
      ],
    });
    expect(word(boot, "steps")).toBe("1");
    const { text } = await fetchSteps();
    const lines = text.split("\n");
    expect(lines.slice(0, 3)).toEqual(["millwright-steps 1", "state pending", "step 1 script 60 rollback 2 5 - todo"]);
    const set = (name: string) =>
      Buffer.from(lines.find((line) => line.startsWith(`set ${name} `))?.split(" ")[2] ?? "", "base64").toString();
    expect(set("url")).toMatch(new RegExp(`^${api.url}/files/note\\.sh\\?node=m-`));
    expect(set("rollback")).toBe("secret");
    expect(lines.at(-2)).toBe("end");
    for (const refused of [await fetchSteps("wrong"), await fetchSteps(token, "02:00:00:00:99:99")])
      expect(refused).toMatchObject({ status: 401, body: { detail: expect.stringContaining("report_token") } });
  });

  test("are progress: of the node, of its events and of its reason", async () => {
    const { report, step, seen, id } = await booted({ boot: IMAGE, steps: [script(1), script(2)] });
    await report({ installation_status: "started" });
    await step(1, "completed");
    await step(2, "retrying", { attempt: 2, message: `no luck ${"x".repeat(400)}` });
    expect(await seen()).toMatchObject({
      installation_steps: [
        { sequence: 1, name: "step 1", type: "script", state: "completed" },
        { sequence: 2, state: "retrying", attempts: 2, message: expect.stringMatching(/^no luck x{247}$/) },
      ],
    });
    await expect
      .poll(async () => JSON.stringify(await api.db.query("select outcome from installs where id = $1", [id])))
      .toContain("step 2 of 2 (step 2) is retrying, try 2");
    // Of a step that is over, a report that comes late changes nothing; nor does one of a step that is not there.
    await step(1, "running");
    await step(77, "running");
    expect(await seen()).toMatchObject({ installation_steps: [{ state: "completed" }, { state: "retrying" }] });
    // Whoever reports is not told what the steps said.
    const { mac_address } = await api.ask("GET", `/api/v1/nodes/${id}`);
    const asked = { mac_address, installation_status: "progress", step: { sequence: 2, state: "running" } };
    const { body } = await api.call<One<object>>("POST", "/api/v1/report", asked, { as: null });
    expect(body.data).toEqual({ state: "installing" });
  });

  test("that were not reported keep an installation from being complete", async () => {
    const { report, step, seen } = await booted({ boot: IMAGE, steps: [script(1), script(2), script(3)] });
    await report({ installation_status: "started" });
    await step(1, "completed");
    await step(2, "skipped");
    await report({ installation_status: "complete" });
    expect(await seen()).toMatchObject({
      state: "installing",
      last_install_error: expect.stringContaining("not the steps 3 (step 3)"),
    });
    await step(3, "completed");
    await report({ installation_status: "complete" });
    expect(await seen()).toMatchObject({ state: "installed", last_install_error: null });
  });

  test("behind the one with next_state run on when the installation is complete", async () => {
    const { report, step, seen } = await booted({
      boot: IMAGE,
      steps: [script(1, { next_state: "installed" }), script(2)],
    });
    await report({ installation_status: "started" });
    await step(1, "completed");
    await report({ installation_status: "complete" });
    await step(2, "failed", { message: "too late to matter" });
    expect(await seen()).toMatchObject({
      state: "installed",
      installation_steps: [{}, { state: "failed", message: "too late to matter" }],
    });
  });

  test("begin again with the next attempt", async () => {
    const { report, step, seen, mac } = await booted({ boot: IMAGE, steps: [script(1), script(2)] });
    await report({ installation_status: "started" });
    await step(1, "completed");
    await report({ installation_status: "failed", installation_error: "no disk" });
    await handedOut(mac);
    expect(await seen()).toMatchObject({
      install_attempts: 1,
      installation_steps: [{ state: "pending" }, { state: "pending" }],
    });
  });

  test("of a workflow that has changed since the boot are not given out", async () => {
    const { fetchSteps, name } = await booted({ boot: IMAGE, steps: [script(1)] });
    await api.ask("PUT", `/api/v1/workflows/${name}`, { name, boot: IMAGE, steps: [script(1), script(2)] });
    expect(await fetchSteps()).toMatchObject({ status: 409 });
  });
});
