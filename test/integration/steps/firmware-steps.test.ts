import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { minutes, seconds } from "../../../src/kernel/time/duration.ts";
import {
  createRedfishMachineProvider,
  type RedfishMachineProvider,
} from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { type BmcGateway, createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { ActivateFirmwarePayload } from "../../../src/runs/steps/rack/activate-firmware.ts";
import type { UpdateFirmwarePayload } from "../../../src/runs/steps/rack/update-firmware.ts";
import { eventually } from "../../support/eventually.ts";
import { anImage, type FrontTraits, UpdateFront } from "../../support/firmware/update-front.ts";
import { Visit, type VisitedDevice } from "../../support/firmware/visit.ts";

const image = anImage("bmc", "2.0");

let front: UpdateFront;
let files: Server;
let gateway: BmcGateway;
let provider: RedfishMachineProvider;
let ahead = 0;
let pinned: string | undefined;
const clock = { now: () => new Date(Date.now() + ahead), monotonic: () => performance.now() + ahead };

beforeEach(async () => {
  ahead = 0;
  pinned = undefined;
  gateway = createBmcGateway({ clock });
  provider = createRedfishMachineProvider({ gateway, clock });
  files = createServer((_request, response) => response.end(image));
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  await provider.close();
  gateway.close();
  await front.close();
  await new Promise((resolve) => files.close(resolve));
});

const UPDATE: UpdateFirmwarePayload = {
  firmware_id: "fw-2",
  component: "bmc",
  version: "2.0",
  digest: "sha256:1",
  targets: [],
  activation: "none",
  settle_seconds: 60,
};

const device: VisitedDevice = {
  get provider() {
    return provider;
  },
  clock,
  get serial() {
    return front.serial;
  },
  bmc: async (): Promise<BmcTarget> => ({
    ...front.target,
    trust: pinned === undefined ? { mode: "pin" } : { mode: "pin", fingerprint256: pinned },
  }),
  image,
  uri: () => `http://127.0.0.1:${(files.address() as AddressInfo).port}/token-4711`,
};

const visitOf = (kind: string, payload: object, withdrawn?: AbortSignal): Visit =>
  new Visit(device, kind, payload, withdrawn);

async function begun(traits: FrontTraits = {}, differing: Partial<UpdateFirmwarePayload> = {}): Promise<Visit> {
  front = await UpdateFront.start(traits);
  return (await visitOf("update_firmware", { ...UPDATE, ...differing }).before()).act();
}

describe("update_firmware", () => {
  test("an image that is not on this server leaves the step to a replica that has it, and nothing is announced", async () => {
    front = await UpdateFront.start();
    const why = "the file is not on this server; it is downloaded again";
    const visit = await new Visit({ ...device, missing: why }, "update_firmware", UPDATE).before();
    const facts = { name: UPDATE.digest };
    expect(await visit.probe()).toEqual({ state: "unknown", message: why, cause: { code: "artifact_missing", facts } });
    expect(
      await visitOf("update_firmware", UPDATE)
        .before()
        .then((other) => other.probe()),
    ).toMatchObject({ state: "not_done" });
  });

  test("shows the percent, and is done when the device shows the version", async () => {
    const visit = await begun();
    front.progress(40, "writing");
    expect(await visit.probe()).toMatchObject({ state: "in_progress", message: "bmc 2.0: 40 %: writing" });
    front.finish();
    expect(await visit.probe()).toMatchObject({ state: "done", verdict: "proven" });
    expect(front.flashes).toHaveLength(1);
  });

  test("sends nothing to a device that has the version", async () => {
    front = await UpdateFront.start();
    front.versions.set("BMC_0", "2.0");
    const visit = await visitOf("update_firmware", UPDATE).before();
    expect(await visit.probe()).toMatchObject({ state: "done", verdict: "unchanged" });
    expect(front.requests.filter((each) => !each.startsWith("GET"))).toEqual([]);
  });

  test("a task that says Completed while the version stays is a failure, once the device has had its time", async () => {
    const visit = await begun();
    front.finish("lies");
    expect(await visit.probe()).toMatchObject({ state: "in_progress" });
    ahead += seconds(61);
    await expect(visit.probe()).rejects.toMatchObject({
      code: "firmware_not_applied",
      facts: { name: "bmc", expected: "2.0", shown: "1.0" },
    });
    expect(front.flashes).toHaveLength(1);
  });

  test("a task that failed says why in the device's words, without the address of the image", async () => {
    const visit = await begun();
    front.finish("fails");
    const failure = await visit.probe().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "firmware_task_failed" });
    expect((failure as Error).message).toContain("is not for this device");
    expect((failure as Error).message).not.toContain("secret");
  });

  test("adopts the task of an order whose answer was lost, and never flashes again", async () => {
    front = await UpdateFront.start();
    const visit = await (await visitOf("update_firmware", UPDATE).before()).act({ dies: true });
    expect(await visit.probe()).toMatchObject({ state: "in_progress", receipt: { task: expect.stringMatching(/1$/) } });
    front.finish();
    expect(await visit.probe()).toMatchObject({ state: "done" });
    expect(front.flashes).toHaveLength(1);
  });

  test.each(["unlisted", "none"] as const)(
    "a device whose tasks are %s leaves it open until the version shows",
    async (tasks) => {
      front = await UpdateFront.start({ tasks });
      const visit = await (await visitOf("update_firmware", UPDATE).before()).act({ dies: true });
      for (const later of [0, seconds(50), minutes(10)]) {
        ahead += later;
        expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "firmware_unproven" } });
      }
      front.finish();
      expect(await visit.probe()).toMatchObject({ state: "done" });
    },
  );

  test("an order that never left is sent again only where a task would surely be seen", async () => {
    const announced = async (tasks: number) => {
      front = await UpdateFront.start();
      for (let task = 0; task < tasks; task += 1) front.noteTask();
      const visit = await visitOf("update_firmware", UPDATE).before();
      visit.actingAt = clock.now(); // and then the process died
      return visit;
    };
    // The list is empty: nobody can say whether this device lists tasks at all.
    expect(await (await announced(0)).probe()).toMatchObject({ state: "unknown" });
    await front.close();
    const visit = await announced(1);
    for (const _again of [1, 2, 3]) expect(await visit.probe()).toMatchObject({ state: "not_done" });
    expect(visit.receipt).toBeNull();
    ahead += minutes(6);
    expect(await visit.probe()).toMatchObject({ state: "unknown" });
    visit.actingAt = clock.now();
    front.comeBack({ keepsTasks: false }); // forgotten over a restart, and perhaps ours with them
    expect(await visit.probe()).toMatchObject({ state: "unknown" });
  });

  test("a task that is not ours proves neither that the order came, nor that it did not", async () => {
    front = await UpdateFront.start();
    front.noteTask();
    const visit = await visitOf("update_firmware", UPDATE).before();
    visit.actingAt = clock.now(); // and then the process died
    front.noteTask(["/redfish/v1/UpdateService/FirmwareInventory/CPLD_0"]);
    expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "firmware_unproven" } });
    expect(visit.receipt).toBeNull();
  });

  test("of two new tasks that can be ours none is adopted", async () => {
    front = await UpdateFront.start();
    front.noteTask();
    const visit = await visitOf("update_firmware", UPDATE).before();
    front.noteTask(); // somebody else's, and done
    await visit.act({ dies: true });
    expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "firmware_unproven" } });
    expect(visit.receipt).toBeNull();
    front.finish();
    expect(await visit.probe()).toMatchObject({ state: "done" });
    expect(front.flashes).toHaveLength(1);
  });

  test("a device that is away, rejects us, or answers oddly tells nothing, and is asked on", async () => {
    const visit = await begun();
    front.goAway();
    expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "unreachable" } });
    front.comeBack({ rejects: true });
    for (let tries = 0; tries < 4; tries += 1) {
      ahead += seconds(20);
      expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "credentials_rejected" } });
    }
    front.comeBack();
    ahead += minutes(2);
    front.finish();
    expect(await visit.probe()).toMatchObject({ state: "done" });
  });

  test("a task that is gone once it is done proves nothing; the version does", async () => {
    const visit = await begun({ tasks: "gone_when_done" });
    front.finish("lies");
    expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "firmware_unproven" } });
    expect(visit.receipt).toMatchObject({ task: expect.stringMatching(/1$/) }); // still known by its name
    ahead += minutes(30);
    expect(await visit.probe()).toMatchObject({ state: "unknown" });
    front.versions.set("BMC_0", "2.0");
    expect(await visit.probe()).toMatchObject({ state: "done" });
  });

  test("firmware that runs after a restart is written, and not yet proven", async () => {
    const visit = await begun({ runsAfter: "bmc_reset" }, { activation: "bmc_reset" });
    front.finish();
    expect(await visit.probe()).toMatchObject({ state: "done", verdict: "staged" });
  });

  test("a device that refuses the address is sent the image, once", async () => {
    const visit = await begun({ refusesHttp: true });
    expect(front.flashes).toMatchObject([{ way: "multipart", bytes: image.length }]);
    expect(visit.log.join("")).not.toContain("token-4711");
    front.finish();
    expect(await visit.probe()).toMatchObject({ state: "done" });
  });

  test("a device that is busy is asked again, and flashes once", async () => {
    front = await UpdateFront.start();
    front.busy = 3;
    await (await visitOf("update_firmware", UPDATE).before()).act();
    expect(front.flashes).toHaveLength(1);
    expect(front.requests.filter((each) => each.endsWith("SimpleUpdate"))).toHaveLength(4);
  });

  test("a device that is busy is not flashed once nobody wants that any more", async () => {
    front = await UpdateFront.start();
    front.busy = Number.POSITIVE_INFINITY;
    const withdrawn = new AbortController();
    const visit = await visitOf("update_firmware", UPDATE, withdrawn.signal).before();
    const acting = visit.act();
    await eventually(async () => visit.log.join("").includes("is busy"), { what: "the device was asked" });
    withdrawn.abort();
    await expect(acting).rejects.toMatchObject({ code: "busy", status: 503 });
    expect(front.flashes).toEqual([]);
  });

  test("a device without such a part is left alone", async () => {
    front = await UpdateFront.start();
    const visit = visitOf("update_firmware", { ...UPDATE, component: "psu" });
    await expect(visit.before()).rejects.toMatchObject({ code: "firmware_mismatch" });
  });
});

describe("a BMC that comes back with another certificate", () => {
  async function flashed(): Promise<Visit> {
    front = await UpdateFront.start();
    pinned = (await provider.can.manager.readRoot(front.target, aCall())).certificateFingerprint;
    const visit = await (await visitOf("update_firmware", UPDATE).before()).act();
    front.finish();
    front.goAway();
    return visit;
  }

  test("is accepted once, where it is the same BMC", async () => {
    const visit = await flashed();
    front.comeBack({ newCertificate: true });
    const shown = (await provider.can.manager.readRoot(front.target, aCall())).certificateFingerprint;
    expect(shown).not.toBe(pinned);
    expect(await visit.probe()).toMatchObject({ state: "done", facts: { certificateFingerprint: shown } });
    expect(visit.accepted).toEqual([shown]);
  });

  test.each([
    ["unless the operator allows it", { device: { acceptsNoCertificate: true }, payload: {} }],
    ["after a flash of something else", { device: {}, payload: { component: "bios" } }],
  ])("is not accepted, and is sent nothing, %s", async (_name, differing) => {
    front = await UpdateFront.start();
    pinned = (await provider.can.manager.readRoot(front.target, aCall())).certificateFingerprint;
    const visited = Object.create(device, Object.getOwnPropertyDescriptors(differing.device)) as VisitedDevice;
    const flash = await new Visit(visited, "update_firmware", UPDATE).before();
    await flash.act();
    const visit = new Visit(visited, "update_firmware", { ...UPDATE, ...differing.payload });
    Object.assign(visit, { evidence: flash.evidence, receipt: flash.receipt, actingAt: flash.actingAt });
    front.finish();
    front.goAway();
    front.comeBack({ newCertificate: true });
    front.requests.length = 0;
    expect(await visit.probe()).toMatchObject({
      state: "unknown",
      cause: { code: "certificate_changed" },
      message: expect.stringContaining("machine accept-certificate"),
    });
    expect(front.requests).toEqual([]);
  });

  test("is not accepted a second time", async () => {
    const visit = await flashed();
    front.versions.set("BMC_0", "1.0");
    front.comeBack({ newCertificate: true });
    expect(await visit.probe()).toMatchObject({ state: "in_progress", receipt: { certificate: expect.any(String) } });
    front.goAway();
    front.comeBack({ newCertificate: true });
    expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "certificate_changed" } });
  });

  test("gets no password where it says that it is another one", async () => {
    const visit = await flashed();
    front.uuid = "5f0b7a8e-0000-4000-8000-00000000beef";
    front.comeBack({ newCertificate: true });
    front.requests.length = 0;
    expect(await visit.probe()).toMatchObject({ state: "unknown", cause: { code: "certificate_changed" } });
    expect(new Set(front.requests)).toEqual(new Set(["GET /redfish/v1"]));
  });
});

describe("activate_firmware", () => {
  const ACTIVATE: ActivateFirmwarePayload = {
    wanted: [{ component: "bmc", version: "2.0", targets: [] }],
    activation: "bmc_reset",
    settle_seconds: 60,
  };

  async function staged(activation: ActivateFirmwarePayload["activation"]): Promise<Visit> {
    front = await UpdateFront.start({ runsAfter: activation === "bmc_reset" ? "bmc_reset" : "host_reset" });
    front.staged.set("BMC_0", "2.0");
    return visitOf("activate_firmware", { ...ACTIVATE, activation }).before();
  }

  test.each(["bmc_reset", "host_reset"] as const)("by a %s, and proves the version", async (activation) => {
    const visit = await staged(activation);
    expect(await visit.probe()).toMatchObject({ state: "not_done" });
    await visit.act();
    expect(await visit.probe()).toMatchObject({ state: "done", verdict: "proven" });
    expect([front.bmcResets, front.hostResets]).toEqual(activation === "bmc_reset" ? [1, 0] : [0, 1]);
  });

  test("by a power cycle: off, on record, and on", async () => {
    const visit = await staged("power_cycle");
    await visit.act();
    expect(front.power).toBe("Off");
    expect(await visit.probe()).toMatchObject({ state: "halfway" });
    await visit.carryOn();
    await visit.carryOn();
    expect(front.power).toBe("On");
    expect(await visit.probe()).toMatchObject({ state: "done" });
  });

  test("a power cycle that is undone in its middle leaves the device on", async () => {
    const visit = await (await staged("power_cycle")).act();
    expect(front.power).toBe("Off");
    expect(await visit.undo()).toBeUndefined();
    expect(front.power).toBe("On");
  });

  test("restarts nothing that shows the version", async () => {
    front = await UpdateFront.start();
    front.versions.set("BMC_0", "2.0");
    const visit = await visitOf("activate_firmware", ACTIVATE).before();
    expect(await visit.probe()).toMatchObject({ state: "done" });
    expect(front.bmcResets).toBe(0);
  });

  test("a version that does not show after the restart is a failure that names it", async () => {
    front = await UpdateFront.start();
    const visit = await (await visitOf("activate_firmware", ACTIVATE).before()).act();
    expect(await visit.probe()).toMatchObject({ state: "in_progress" });
    ahead += seconds(61);
    const facts = { name: "bmc", expected: "2.0", shown: "1.0" };
    await expect(visit.probe()).rejects.toMatchObject({ code: "firmware_not_applied", facts });
  });

  test("a device that does not tell when it started is restarted once its time is over, where the order may not have left", async () => {
    const visit = await staged("host_reset");
    visit.evidence = { ...visit.evidence, started: null };
    visit.actingAt = new Date(Date.now() + ahead); // its process died before it sent the order
    expect(await visit.probe()).toMatchObject({ state: "in_progress" });
    ahead += seconds(61);
    expect(await visit.probe()).toMatchObject({ state: "not_done" });
    await visit.act();
    expect(await visit.probe()).toMatchObject({ state: "done" });
    expect(front.hostResets).toBe(1);
  });

  test("a restart that was sent and lost its answer is not sent again", async () => {
    const visit = await (await staged("host_reset")).act({ dies: true });
    expect(await visit.probe()).toMatchObject({ state: "done" });
    const other = await visitOf("activate_firmware", {
      ...ACTIVATE,
      wanted: [{ component: "bios", version: "9", targets: [] }],
    }).before();
    await other.act({ dies: true });
    expect(await other.probe()).toMatchObject({ state: "in_progress" }); // it has restarted: another order would be one too many
  });
});

test.each([
  ["update_firmware", UPDATE],
  ["activate_firmware", { wanted: [UPDATE], activation: "power_cycle", settle_seconds: 60 }],
  ["set_device_power", { desired: "off" }],
] as const)("%s is not begun on a BMC that answers for another device", async (kind, payload) => {
  front = await UpdateFront.start();
  const recorded = Object.create(device, { serial: { value: "another-0002" } }) as VisitedDevice;
  await expect(new Visit(recorded, kind, payload).before()).rejects.toMatchObject({
    code: "wrong_identity",
    disposition: "fail",
    facts: { expected: "another-0002", shown: "front-0001" },
  });
  expect(front.requests.filter((each) => !each.startsWith("GET"))).toEqual([]);
});

describe("set_device_power and validate_device", () => {
  test("switch off, and read it back", async () => {
    front = await UpdateFront.start();
    const visit = await visitOf("set_device_power", { desired: "off" }).before();
    expect(await visit.probe()).toMatchObject({ state: "not_done" });
    await visit.act();
    expect(await visit.probe()).toMatchObject({ state: "done", facts: { powerState: "off" } });
  });

  test("a device that is right passes, and one that is not says each fault", async () => {
    front = await UpdateFront.start();
    const wanted = [{ component: "bmc", version: "1.0", targets: [] }];
    expect(await visitOf("validate_device", { wanted }).probe()).toMatchObject({ state: "done" });
    front.power = "Off";
    front.health = "Critical";
    const unfit = await visitOf("validate_device", { wanted: [{ ...wanted[0], version: "2.0" }] }).probe();
    expect(unfit).toMatchObject({ state: "unknown", cause: { code: "device_unfit", facts: { what: "the power" } } });
    expect(unfit.message).toBe(
      "the power is off, wanted on; the health is critical, wanted ok; the version of bmc is 1.0, wanted 2.0",
    );
    front.goAway();
    expect(await visitOf("validate_device", { wanted }).probe()).toMatchObject({ cause: { code: "unreachable" } });
  });
});
