import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { startTemporarySimulator } from "../../../simulator/testing/temporary-simulator.ts";

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;

interface Node {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: { readonly unschedulable?: boolean };
}

/** The shell and the kubectl of simulated machines are ours: what ships must also be understood by the real ones. */
test("the runbooks for nodes do with the real kubectl what they do on simulated machines", async (context) => {
  if (!hasKubectl) context.skip("needs kubectl");
  const directory = mkdtempSync(join(tmpdir(), "millwright-runbooks-"));
  await using site = await startTemporarySimulator({ site: "racks=1,joined=1", speed: 400 });
  const { body: clusters } = await site.control<{ kubeconfig: string; api_url: string; token: string }[]>(
    "GET",
    "/clusters",
  );
  const { kubeconfig = "", api_url = "", token = "" } = clusters[0] ?? {};
  const file = join(directory, "kubeconfig");
  writeFileSync(file, kubeconfig, { mode: 0o600 });
  const node = "m-rack1-01";
  const seen = async (): Promise<Node> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await (await fetch(`${api_url}/api/v1/nodes/${node}`, { headers })).json()) as Node;
  };
  // As whom the kubelet of a node signs in, with the rights that a cluster gives it.
  const kubeletFile = join(directory, "kubelet.conf");
  const { users, ...places } = parse(kubeconfig);
  const asKubelet = { ...users[0].user, as: `system:node:${node}`, "as-groups": ["system:nodes"] };
  writeFileSync(kubeletFile, stringify({ ...places, users: [{ ...users[0], user: asKubelet }] }), { mode: 0o600 });
  const run = (script: string, signedIn = file) => {
    const env = { HOME: directory, PATH: process.env.PATH ?? "", node, kubeconfig: signedIn, timeout: "30" };
    const { promise, resolve } = Promise.withResolvers<{ code: unknown; said: string }>();
    execFile("sh", [`runbooks/${script}.sh`], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, said: stdout + stderr }),
    );
    return promise;
  };
  const MARK = "millwright.io/cordoned";
  const MAINTENANCE = "millwright.io/maintenance";
  try {
    expect(await run("drain_check")).toMatchObject({ code: 1, said: expect.stringContaining("is not cordoned") });
    expect((await run("cordon_node")).code).toBe(0);
    expect(await seen()).toMatchObject({
      metadata: { annotations: { [MARK]: "true" } },
      spec: { unschedulable: true },
    });
    expect(await run("cordon_node")).toMatchObject({ code: 0, said: expect.stringContaining("cordoned already") });

    const withPods = await run("drain_check");
    expect(withPods.code).toBe(1);
    expect(withPods.said).toMatch(/these pods remain on it: (default\/web-7d4f-\w+ ?){3}:/);

    // A kubelet's own credentials are enough for all but a drain: that is why the cluster is asked for it (node-drain.ts).
    for (const script of ["uncordon_node", "cordon_node"]) expect((await run(script, kubeletFile)).code).toBe(0);
    expect((await run("drain_check", kubeletFile)).said).toMatch(/these pods remain on it/);
    expect(await run("drain_node", kubeletFile)).toMatchObject({
      code: 1,
      said: expect.stringContaining(`User "system:node:${node}" cannot get resource "daemonsets"`),
    });
    expect((await run("drain_node")).code).toBe(0);
    expect(await run("drain_check")).toMatchObject({ code: 0, said: expect.stringContaining("nothing is left on it") });

    expect((await run("uncordon_node")).code).toBe(0);
    const given = await seen();
    expect([given.spec, given.metadata.annotations[MARK]]).toEqual([{}, undefined]);

    expect((await run("drain_node")).code).toBe(0);
    expect((await seen()).metadata.annotations[MARK]).toBe("true");

    expect((await run("uncordon_node")).code).toBe(0);
    await promisify(execFile)("kubectl", ["--kubeconfig", file, "cordon", node]);
    expect(await run("uncordon_node")).toMatchObject({ code: 0, said: expect.stringContaining("stays cordoned") });
    expect(await seen()).toMatchObject({ spec: { unschedulable: true } });

    const annotate = (...marks: string[]) =>
      promisify(execFile)("kubectl", ["--kubeconfig", file, "annotate", "node", node, ...marks]);
    await annotate(`${MARK}=true`, `${MAINTENANCE}=true`);
    expect(await run("uncordon_node")).toMatchObject({ code: 0, said: expect.stringContaining("is in maintenance") });
    expect(await seen()).toMatchObject({ spec: { unschedulable: true } });
    // Somebody uncordoned it by hand in between: what a run cordons then is no maintenance's.
    await promisify(execFile)("kubectl", ["--kubeconfig", file, "uncordon", node]);
    expect((await run("cordon_node")).code).toBe(0);
    expect((await run("uncordon_node")).code).toBe(0);
    const after = await seen();
    expect([after.spec, after.metadata.annotations[MARK], after.metadata.annotations[MAINTENANCE]]).toEqual([
      {},
      undefined,
      undefined,
    ]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}, 60_000);
