import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { networkFrom } from "../devices/network.ts";
import { signIn } from "../testing/ssh-client.ts";
import { type MachineRow, startTemporarySimulator } from "../testing/temporary-simulator.ts";

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
let rows: MachineRow[];

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1,joined=1", speed: 2_000 });
  rows = (await site.control<MachineRow[]>("GET", "/inventory/machines")).body;
});
afterAll(() => site[Symbol.asyncDispose]());

const row = (index: number): MachineRow => rows[index] as MachineRow;
const at = ({ ssh_endpoint, ...rest }: MachineRow, address: string): MachineRow => ({
  ...rest,
  ssh_endpoint: `${address}:${ssh_endpoint.split(":")[1] ?? ""}`,
});

interface Node {
  readonly spec: { readonly unschedulable?: true };
  readonly status: {
    readonly nodeInfo: { readonly kubeletVersion: string };
    readonly addresses: readonly { readonly address: string }[];
  };
}

async function ask<T>(path: string): Promise<T> {
  const { body: clusters } = await site.control<{ api_url: string; token: string }[]>("GET", "/clusters");
  const { api_url = "", token = "" } = clusters[0] ?? {};
  return (await fetch(`${api_url}${path}`, { headers: { authorization: `Bearer ${token}` } })).json() as Promise<T>;
}
const node = (id: string) => ask<Node>(`/api/v1/nodes/${id}`);
const workOn = async (id: string): Promise<number> => {
  const { items } = await ask<{ items: { metadata: { namespace: string } }[] }>(
    `/api/v1/pods?fieldSelector=spec.nodeName=${id}`,
  );
  return items.filter(({ metadata }) => metadata.namespace === "default").length;
};

describe("kubectl on a node", () => {
  const kubectl = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf";

  test("cordons, drains and gives back the node itself, as the cluster's API then shows", async () => {
    const machine = row(0);
    using shell = await signIn(machine);
    expect(await workOn(machine.machine_id)).toBeGreaterThan(0);
    // A kubelet may not read daemon sets.
    expect(await shell.run(`${kubectl} drain "$(hostname)" --ignore-daemonsets`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot get resource "daemonsets"'),
    });
    await shell.run("printf 'clusters:\\n- name: default-cluster\\n' > /root/admin.conf");
    const asAdmin = "kubectl --kubeconfig /root/admin.conf";
    expect(await shell.run(`${asAdmin} drain "$(hostname)"`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--ignore-daemonsets"),
    });
    expect(await shell.run(`${asAdmin} drain "$(hostname)" --ignore-daemonsets --timeout=300s`)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("drained"),
    });
    expect((await node(machine.machine_id)).spec.unschedulable).toBe(true);
    expect(await workOn(machine.machine_id)).toBe(0);
    const jsonpath = `${kubectl} get node "$(hostname)" -o 'jsonpath={.spec.unschedulable}'`;
    expect((await shell.run(jsonpath)).stdout).toBe("true");
    // A kubelet that starts anew brings nothing to a node that takes nothing.
    await shell.run("systemctl restart kubelet");
    expect(await workOn(machine.machine_id)).toBe(0);
    expect((await shell.run(`${kubectl} uncordon "$(hostname)"`)).code).toBe(0);
    expect((await node(machine.machine_id)).spec).toEqual({});
    expect(await workOn(machine.machine_id)).toBeGreaterThan(0);
  });

  test("tells of the pods of a node by a template, which others than kubectl would fill alike", async () => {
    const machine = row(4);
    using shell = await signIn(machine);
    const template = `{range .items[*]}{.metadata.namespace}/{.metadata.name}:{.metadata.annotations.kubernetes\\.io/config\\.mirror}:{.metadata.ownerReferences[*].kind}{"\\n"}{end}`;
    const list = (selector: string) =>
      shell.run(`${kubectl} get pods --all-namespaces --field-selector "${selector}" -o 'jsonpath=${template}'`);
    const { stdout } = await list(`spec.nodeName=${machine.machine_id},status.phase!=Failed`);
    expect(stdout.split("\n").toSorted()).toEqual([
      "",
      expect.stringMatching(/^default\/web-7d4f-\w+::ReplicaSet$/),
      expect.stringMatching(/^default\/web-7d4f-\w+::ReplicaSet$/),
      expect.stringMatching(/^default\/web-7d4f-\w+::ReplicaSet$/),
      expect.stringMatching(/^kube-system\/cni-\w+::DaemonSet$/),
      expect.stringMatching(/^kube-system\/kube-proxy-\w+::DaemonSet$/),
    ]);
    expect(await list("spec.nodeName=nobody")).toMatchObject({ code: 0, stdout: "" });
    expect((await shell.run(`${kubectl} get pods -o name`)).stdout).toMatch(/^(pod\/web-\S+\n)+$/);
    expect(await shell.run(`${kubectl} get pods -o 'jsonpath={.items'`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("unclosed action"),
    });
  });

  test("changes marks and scheduling of a node in one write", async () => {
    const machine = row(5);
    using shell = await signIn(machine);
    const patch = (body: string) => shell.run(`${kubectl} patch node "$(hostname)" --type merge --patch '${body}'`);
    const read = (path: string) => shell.run(`${kubectl} get node "$(hostname)" -o 'jsonpath={${path}}'`);
    const marked = '{"metadata":{"annotations":{"example.com/mark":"true"}},"spec":{"unschedulable":true}}';
    expect(await patch(marked)).toMatchObject({ code: 0, stdout: `node/${machine.machine_id} patched\n` });
    expect((await read(".metadata.annotations.example\\.com/mark")).stdout).toBe("true");
    expect((await node(machine.machine_id)).spec.unschedulable).toBe(true);
    await patch('{"metadata":{"annotations":{"example.com/mark":null}},"spec":{"unschedulable":null}}');
    expect((await read(".metadata.annotations.example\\.com/mark")).stdout).toBe("");
    expect((await node(machine.machine_id)).spec).toEqual({});
    expect((await patch("{")).code).toBe(1);
  });

  test("is refused without credentials, and for nodes that are not there", async () => {
    using shell = await signIn(row(0));
    expect((await shell.run("kubectl cordon x")).stderr).toContain("no such file");
    expect((await shell.run(`${kubectl} cordon nobody`)).stderr).toContain('nodes "nobody" not found');
  });
});

test("a kubelet of another version shows in the cluster once it was started again", async () => {
  const machine = row(1);
  using shell = await signIn(machine);
  const version = async () => (await node(machine.machine_id)).status.nodeInfo.kubeletVersion;
  expect(await version()).toBe("v1.31.4");
  expect((await shell.run("apt-get install -y kubelet=9.9-*")).code).toBe(100);
  expect((await shell.run("apt-get install -y kubelet=1.33.0-* kubeadm=1.33.0-*")).code).toBe(0);
  expect((await shell.run("kubelet --version")).stdout).toBe("Kubernetes v1.33.0\n");
  expect(await version()).toBe("v1.31.4");
  await shell.run("systemctl restart kubelet");
  expect(await version()).toBe("v1.33.0");
});

describe("network settings", () => {
  const settings = (eth0: string) => `network: {version: 2, ethernets: {eth0: {${eth0}}}}`;
  const put = (text: string) => `printf '%s' '${text}' > /etc/netplan/90-test.yaml`;

  test("are in force once applied: the machine answers there, and where it was before no more", async () => {
    const machine = row(2);
    using before = await signIn(machine);
    const cut = new Promise<void>((resolve) => before.client.once("close", () => resolve()));
    before.run(`${put(settings("dhcp4: false, addresses: [127.90.0.2/8]"))}; netplan apply`).catch(() => {});
    await cut;
    await expect(signIn(machine)).rejects.toThrow();
    using after = await signIn(at(machine, "127.90.0.2"));
    expect((await after.run("hostname")).stdout.trim()).toBe(machine.machine_id);
    expect((await after.run("ip -brief address show scope global")).stdout).toContain("127.90.0.2/8");
    expect((await node(machine.machine_id)).status.addresses[0]?.address).toBe("127.90.0.2");
    expect((await after.run("ping -c 1 -W 5 127.66.1.1")).code).toBe(0);
    expect((await after.run("ping -c 1 -W 5 127.66.1.3")).code).toBe(1);
  });

  test("that make no sense change nothing", async () => {
    const machine = row(3);
    using shell = await signIn(machine);
    expect(await shell.run(`${put(settings("addresses: [nowhere]"))}; netplan apply`)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("malformed address 'nowhere'"),
    });
    expect((await shell.run("ip route show default")).stdout).toContain("default via");
  });

  test.each([
    [settings(""), ["lease"]],
    [settings("addresses: [10.0.0.5/24]"), ["10.0.0.5", "lease"]],
    [settings("dhcp4: false, addresses: [10.0.0.5/24, 10.0.0.6/24]"), ["10.0.0.5", "10.0.0.6"]],
    [settings("dhcp4: false"), []],
  ])("%s make the addresses %j", (text, addresses) => {
    expect(networkFrom({ "/etc/netplan/90.yaml": text, "/etc/other.yaml": "{" }, "lease")).toEqual({ addresses });
  });
});
