import { connect } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { startTemporarySimulator } from "../testing/temporary-simulator.ts";
import { NUMBERINGS, type RackManagerCall } from "./numbering.ts";
import { decode, encode, type Message } from "./wire.ts";

type Site = Awaited<ReturnType<typeof startTemporarySimulator>>;

const deviceOf = async (site: Site, id: string) =>
  (await site.control<{ mac: string; components: { id: string; version: string }[] }>("GET", `/devices/${id}`)).body;

const nodeOf = async (site: Site, id: string, type: number) => ({
  node_id: id,
  rack_id: "rack-1",
  type,
  bmc_endpoint: { interface: { mac_address: (await deviceOf(site, id)).mac.toUpperCase() }, port: 443 },
});

async function opened(api: "d" | "h") {
  const site = await startTemporarySimulator({ site: "racks=1", speed: 2_000, rackManager: api });
  const { body } = await site.control<{ url: string }>("GET", "/rack-manager");
  const session = connect(body.url);
  const numbering = NUMBERINGS[api];
  const call = async (name: RackManagerCall, request: Message): Promise<Message> => {
    const method = numbering.methods[name];
    if (method === undefined) throw new Error(`no ${name}`);
    const stream = session.request({
      ":method": "POST",
      ":path": `/rack_manager.RackManager/${method.name}`,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const bytes = encode(method.request, request);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(bytes.length, 1);
    stream.end(Buffer.concat([prefix, bytes]));
    let status = "";
    stream.on("trailers", (trailers) => {
      status = `${trailers["grpc-status"]} ${decodeURIComponent(String(trailers["grpc-message"] ?? ""))}`;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    if (!status.startsWith("0 ")) throw new Error(status);
    return decode(method.response, Buffer.concat(chunks).subarray(5));
  };
  return {
    site,
    call,
    words: numbering.words,
    async [Symbol.asyncDispose]() {
      session.destroy();
      await site[Symbol.asyncDispose]();
    },
  };
}

describe.each(["d", "h"] as const)("the rack manager with the numbering %s", (api) => {
  test("writes firmware as jobs, and refuses a second one for the same node", async () => {
    await using manager = await opened(api);
    const { site, call, words } = manager;
    await site.control("PUT", "/speed", { speed: 20 });
    const type = words.type.compute;
    const nodes = { nodes: [await nodeOf(site, "m-rack1-01", type), await nodeOf(site, "m-rack1-02", type)] };
    const file = "GB-2U-96C--bios--U46-2.30.bin";
    const request = {
      nodes,
      firmware_targets: { [type]: { targets: [{ target: "bios", filename: file }] } },
      activate: true,
    };
    const taken = await call("updateFirmware", request);
    expect(taken).toMatchObject({ node_jobs: [{ node_id: "m-rack1-01" }, { node_id: "m-rack1-02" }] });
    const again = await call("updateFirmware", request);
    expect(again).toMatchObject({ response: { status: words.code.failure } });
    expect(again.node_jobs).toBeUndefined();
    await site.control("PUT", "/speed", { speed: 2_000 });
    const [{ job_id = "" } = {}] = taken.node_jobs as { job_id?: string }[];
    for (let tries = 0; tries < 300; tries += 1) {
      const { job_state } = await call("firmwareJob", { job_id });
      if (job_state === words.job.completed) break;
      expect(job_state).toBe(words.job.running);
      await delay(20);
    }
    const { components } = await deviceOf(site, "m-rack1-01");
    expect(components.find(({ id }) => id === "bios")?.version).toBe("U46-2.30");
    const { body } = await site.control<{ calls: { call: string; nodes: string[] }[] }>("GET", "/rack-manager");
    expect(body.calls[0]).toEqual({ call: "updateFirmware", nodes: ["m-rack1-01", "m-rack1-02"] });
  });

  test("tells where switches are, and configures their fabric", async () => {
    await using manager = await opened(api);
    const { site, call, words } = manager;
    const trays = await Promise.all([1, 2].map((n) => nodeOf(site, `rack-1-switch-${n}`, words.type.switch)));
    const places = await call("deviceInfo", { nodes: { nodes: trays } });
    expect(places.node_device_info).toEqual([
      { node_id: "rack-1-switch-1", slot_number: 19, tray_index: 0 },
      { node_id: "rack-1-switch-2", slot_number: 20, tray_index: 1 },
    ]);
    const begun = await call("configureFabric", { device: trays[0], topology_type: "gb200_nvl72r1_c2g4" });
    expect(begun).toMatchObject({ status: words.code.success, topology_used: "gb200_nvl72r1_c2g4" });
    for (let tries = 0; tries < 200; tries += 1) {
      const { services } = await call("fabricStatus", { nodes: { nodes: trays } });
      const said = (services as Record<string, { status_json: string }>)["rack-1-switch-2"]?.status_json ?? "";
      if (said.includes("CONTROL_PLANE_STATE_CONFIGURED")) return;
      await delay(20);
    }
    throw new Error("the fabric was not configured");
  });
});

test("jobs can be made to never end, and the rack manager to be silent or out of order", async () => {
  await using manager = await opened("d");
  const { site, call, words } = manager;
  const rule = { device: "m-rack1-03", fault: { type: "job_never_ends" } };
  const { body: stopped } = await site.control<{ id: string }>("POST", "/faults", rule);
  const type = words.type.compute;
  const taken = await call("updateFirmware", {
    nodes: { nodes: [await nodeOf(site, "m-rack1-03", type)] },
    firmware_targets: { [type]: { targets: [{ target: "bmc", filename: "GB-2U-96C--bmc--1.10.0.bin" }] } },
  });
  const [{ job_id = "" } = {}] = taken.node_jobs as { job_id?: string }[];
  await delay(500);
  expect((await call("firmwareJob", { job_id })).job_state).toBe(words.job.running);
  expect(await call("firmwareJob", { job_id: "job-99" })).toMatchObject({ status: words.code.failure });
  await site.control("POST", "/faults", { device: "rack-manager", fault: { type: "drop" }, times: 1 });
  await expect(call("firmwareJob", { job_id })).rejects.toThrow("14 ");
  await site.control("DELETE", `/faults/${stopped.id}`);
  for (let tries = 0; (await call("firmwareJob", { job_id })).job_state === words.job.running; tries += 1) {
    if (tries > 500) throw new Error("the job stands still although its fault is gone");
    await delay(20);
  }
  expect((await call("firmwareJob", { job_id })).job_state).toBe(words.job.completed);
});
