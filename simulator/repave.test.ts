import { describe, expect, test } from "vitest";
import { startSimulator } from "./simulator.ts";
import { signIn } from "./testing/ssh-client.ts";
import { connect, type MachineRow, startTemporarySimulator, temporaryDataDir } from "./testing/temporary-simulator.ts";

const MACHINE = "m-rack1-03";
const SYSTEM = "/redfish/v1/Systems/1";
const CD = "/redfish/v1/Managers/bmc/VirtualMedia/Cd";

interface Device {
  readonly os: {
    readonly up: boolean;
    readonly doing: string;
    readonly hung: string | null;
    readonly image: string | null;
    readonly boot_id: string;
    readonly host_key: string;
    readonly installing: { readonly token: string } | null;
  };
  readonly kubernetes: { readonly cluster: string | null };
  readonly effects: Readonly<Record<string, number>>;
}

type Clients = Pick<ReturnType<typeof connect>, "control" | "redfish">;

const truth = async ({ control }: Clients) => (await control<Device>("GET", `/devices/${MACHINE}`)).body;

/** What a control plane does to a machine that is to be installed anew. */
async function orderInstallation({ control, redfish }: Clients): Promise<{ ref: string; digest: string }> {
  const { body: images } = await control<{ ref: string; url: string; digest: string }[]>("GET", "/images");
  const image = images.find(({ ref }) => ref === "ubuntu:22.04-k8s");
  if (image === undefined) throw new Error("the site lacks the image that the built-in plans name");
  const Image = `${image.url}?token=t-1&cloud_init=${encodeURIComponent("cloud-init/worker-node")}`;
  const calls = [
    ["POST", `${CD}/Actions/VirtualMedia.InsertMedia`, { Image, Inserted: true }],
    ["PATCH", SYSTEM, { Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Cd" } }],
    ["POST", `${SYSTEM}/Actions/ComputerSystem.Reset`, { ResetType: "ForceRestart" }],
  ] as const;
  for (const [method, path, body] of calls) {
    expect((await redfish(MACHINE, path, { method, body })).status).toBe(204);
  }
  return image;
}

describe("installing a machine through its management controller", () => {
  test("leaves the image, its marker, another host key and another boot id, and no cluster", async () => {
    await using site = await startTemporarySimulator({ site: "racks=1", speed: 2_000 });
    await site.control("POST", `/devices/${MACHINE}/join`, { cluster: "default-cluster" });
    const before = await truth(site);
    const { digest } = await orderInstallation(site);
    await expect
      .poll(() => truth(site), { timeout: 8_000 })
      .toMatchObject({ os: { up: true, source: "virtual_media" } });
    const { body: rows } = await site.control<MachineRow[]>("GET", "/inventory/machines");
    const row = rows.find(({ machine_id }) => machine_id === MACHINE) as MachineRow;
    using shell = await signIn(row);
    const after = await truth(site);
    expect([after.os.boot_id, shell.hostKey]).not.toEqual([before.os.boot_id, expect.anything()]);
    expect(shell.hostKey).toBe(after.os.host_key);
    expect(shell.hostKey).not.toBe(before.os.host_key);
    const marker = (await shell.run("cat /etc/millwright-image")).stdout.split("\n");
    expect(marker).toEqual(
      expect.arrayContaining([
        "image=ubuntu:22.04-k8s",
        `digest=${digest}`,
        `machine=${MACHINE}`,
        `serial=${row.serial}`,
        "cloud_init=cloud-init/worker-node",
        "token=t-1",
      ]),
    );
    expect(after).toMatchObject({
      kubernetes: { cluster: null },
      boot_override: { enabled: "Disabled", target: "None" },
      effects: { installs_started: 1, installs: 1, boots: 1, resets: 1, media_inserts: 1, power_changes: 0 },
    });
  });

  test("can fail, and then nothing is left to boot", async () => {
    await using site = await startTemporarySimulator({ site: "racks=1", speed: 5_000 });
    await site.control("POST", "/faults", { device: MACHINE, fault: { type: "install_fails" }, times: 1 });
    await orderInstallation(site);
    await expect
      .poll(() => truth(site), { timeout: 8_000 })
      .toMatchObject({ os: { up: false, hung: "install_failed", image: null } });
    const entries = "/redfish/v1/Managers/bmc/LogServices/EventLog/Entries";
    expect((await site.redfish(MACHINE, entries)).text).toContain("The installation has failed.");
  });

  test("goes on where it was when the simulator dies in the middle of it, once", async () => {
    using dir = temporaryDataDir();
    const options = { dataDir: dir.path, seed: 7, site: "racks=1" };
    const first = await startSimulator({ ...options, speed: 100 });
    const clients = connect({ dataDir: dir.path, controlUrl: first.controlUrl });
    await orderInstallation(clients);
    await expect.poll(() => truth(clients), { timeout: 8_000 }).toMatchObject({ os: { installing: { token: "t-1" } } });
    const rowsBefore = (await clients.control("GET", "/inventory/machines")).body;
    const clustersBefore = (await clients.control("GET", "/clusters")).body;
    clients.agent.destroy();
    await first.close();

    const second = await startSimulator({ ...options, speed: 0.001 });
    const again = connect({ dataDir: dir.path, controlUrl: second.controlUrl });
    // The first call may still go out on a connection to the simulator that is gone.
    await expect
      .poll(async () => (await again.control("GET", "/inventory/machines")).body, { timeout: 9_000 })
      .toEqual(rowsBefore);
    expect((await again.control("GET", "/clusters")).body).toEqual(clustersBefore);
    expect(await truth(again)).toMatchObject({
      os: { up: false, installing: { token: "t-1" } },
      media: expect.any(String),
    });
    await again.control("PUT", "/speed", { speed: 100_000 });
    await expect
      .poll(() => truth(again), { timeout: 9_000 })
      .toMatchObject({
        os: { up: true, image: "ubuntu:22.04-k8s" },
        effects: { installs_started: 1, installs: 1, boots: 1 },
      });
    again.agent.destroy();
    await second.close();
  });
});
