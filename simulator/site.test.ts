import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createSeededValues } from "./seeded-values.ts";
import { buildSite, loadSite } from "./site.ts";
import { temporaryDataDir } from "./testing/temporary-simulator.ts";

const seeded = createSeededValues(1);

describe("site", () => {
  test("racks=N has eight shelves in each rack, each at an address of its own, in both layouts", () => {
    const { shelves } = loadSite("racks=2", seeded);
    expect(shelves.map(({ address }) => address)).toEqual(
      ["127.64.1", "127.64.2"].flatMap((rack) => [1, 2, 3, 4, 5, 6, 7, 8].map((slot) => `${rack}.${slot}`)),
    );
    expect(new Set(shelves.map(({ layout }) => layout))).toEqual(new Set(["liteon", "standard"]));
  });

  test("the same seed makes the same devices, another seed others", () => {
    expect(loadSite("racks=3", createSeededValues(1))).toEqual(loadSite("racks=3", seeded));
    const serials = (seed: number) => loadSite("racks=3", createSeededValues(seed)).shelves.map(({ serial }) => serial);
    expect(serials(2).filter((serial) => serials(1).includes(serial))).toEqual([]);
  });

  test("a larger datacentre begins with the smaller one, and goes on past the 255th rack", () => {
    const { shelves } = loadSite("racks=257", seeded);
    expect(shelves.slice(0, 16)).toEqual(loadSite("racks=2", seeded).shelves);
    expect(new Set(shelves.map(({ address }) => address)).size).toBe(257 * 8);
    expect(shelves.at(-1)?.address).toBe("127.67.1.8");
  });

  test("racks=N has eighteen machines in each rack, and no address is used twice however many racks there are", () => {
    const { machines } = loadSite("racks=2", seeded);
    expect(machines.map(({ id }) => id).filter((id) => id.endsWith("-18"))).toEqual(["m-rack1-18", "m-rack2-18"]);
    expect(machines[19]).toMatchObject({ rack: "rack-2", slot: 2, address: "127.65.2.2", sshAddress: "127.66.2.2" });
    const large = loadSite("racks=600", seeded);
    expect(large.machines.slice(0, 36)).toEqual(machines);
    expect(large.machines).toHaveLength(600 * 18);
  });

  test("racks=N has nine switches in each rack, and no address is used twice however many racks there are", () => {
    const { switches } = loadSite("racks=2", seeded);
    expect(switches).toHaveLength(18);
    expect(switches[10]).toMatchObject({ rack: "rack-2", trayIndex: 1, slot: 20, address: "127.188.2.2" });
    const racks = Array.from({ length: 10_000 }, () => ({ machines: 1, shelves: 1, switches: 1 }));
    expect(buildSite({ racks }, seeded).switches.at(-1)?.nvos.address).toBe("127.59.16.1");
  });

  test("spare=1 leaves one machine of each rack out of its cluster, with an older firmware", () => {
    const { machines } = loadSite("racks=2,joined=1,spare=1", seeded);
    const spare = machines.filter(({ components }) => components.some(({ version }) => version === "U46-2.10"));
    expect(spare.map(({ id, initialCluster }) => [id, initialCluster])).toEqual([
      ["m-rack1-18", null],
      ["m-rack2-18", null],
    ]);
    expect(machines.filter(({ initialCluster }) => initialCluster !== null)).toHaveLength(17);
  });

  test("racks=N,joined=M has the machines of the last M racks in the first cluster already", () => {
    const { machines, clusters } = loadSite("racks=3,joined=2", seeded);
    expect(new Set(machines.map(({ rack, initialCluster }) => `${rack} ${initialCluster}`))).toEqual(
      new Set(["rack-1 null", "rack-2 default-cluster", "rack-3 default-cluster"]),
    );
    expect(clusters[0]?.name).toBe("default-cluster");
  });

  test("management controllers are ideal unless a rack or a machine says otherwise", () => {
    const traits = (description: unknown) => buildSite(description, seeded).machines.map((machine) => machine.traits);
    const racks = [{ profile: "no_sessions", machines: [{}, { profile: ["late_power"] }] }, { machines: 1 }];
    expect(traits({ racks })).toEqual([["no_sessions"], ["late_power"], []]);
    const mixed = loadSite("racks=1,profile=mixed", seeded).machines.map((machine) => machine.traits);
    expect(new Set(mixed.map((traits) => traits.length)).size).toBeGreaterThan(2);
    expect(mixed[0]).toEqual([]);
    expect(mixed.flat()).toEqual(expect.arrayContaining(["media_downloaded", "one_virtual_drive", "several_systems"]));
    const { shelves } = buildSite({ racks: [{ shelves: [{ profile: "worst" }, {}] }] }, seeded);
    expect(shelves.map((shelf) => shelf.traits.length > 0)).toEqual([true, false]);
  });

  test("the same seed makes the same machines, another seed others", () => {
    const identities = (seed: number) =>
      loadSite("racks=1", createSeededValues(seed)).machines.flatMap(({ serial, systemUuid, macs }) => [
        serial,
        systemUuid,
        ...macs,
      ]);
    expect(identities(1)).toEqual(identities(1));
    expect(new Set(identities(1)).size).toBe(18 * 4);
    expect(identities(2).filter((identity) => identities(1).includes(identity))).toEqual([]);
  });

  test("a site file says as much or as little as it likes", () => {
    using dir = temporaryDataDir();
    const file = join(dir.path, "site.yaml");
    writeFileSync(
      file,
      `racks:
  - id: a1
    layout: standard
    shelves:
      - { serial: S-1, mac: "02:00:00:00:00:01", username: admin, password: canary, power: "off", address: 127.9.9.9 }
      - { layout: liteon }
  - shelves: 1
`,
    );
    const { shelves } = loadSite(file, seeded);
    expect(shelves).toMatchObject([
      {
        id: "a1-shelf-1",
        rack: "a1",
        serial: "S-1",
        layout: "standard",
        address: "127.9.9.9",
        password: "canary",
        initialPower: "off",
      },
      { id: "a1-shelf-2", rack: "a1", layout: "liteon", initialPower: "on", vendor: "LITE-ON", model: "PF-1333-7R" },
      { id: "rack-2-shelf-1", layout: "standard" },
    ]);
  });

  test.each([
    ["racks=0", /N from 1/],
    ["racks=1,joined=2", /M not more than N/],
    ["racks=many", /racks=N/],
    ["racks=1,profile=perfect", /site\.profile/],
    ["/no/such/file", /site: must be racks=N or the path/],
  ])("refuses %s and says why", (site, reason) => {
    expect(() => loadSite(site, seeded)).toThrow(reason);
  });

  test.each([
    [{ racks: [{ shelves: [{ layout: "delta" }] }] }, /site\.racks\[0\]\.shelves\[0\]\.layout/],
    [{ racks: [{ shelves: [{}, { address: "10.0.0.1" }] }] }, /site\.racks\[0\]\.shelves\[1\]\.address/],
    [{ racks: [{ shelvs: 3 }] }, /site\.racks\[0\]\.shelvs/],
    [
      { racks: [{ shelves: [{ serial: "X" }, { serial: "X" }] }] },
      /serial "X" belongs to two, the shelf rack-1-shelf-1 and the shelf rack-1-shelf-2/,
    ],
    [{ racks: [{ machines: [{ address: "127.1.1.1" }, { ssh_address: "127.1.1.1" }] }] }, /address "127\.1\.1\.1"/],
    [{ racks: [{ machines: [{ ssh_address: "127.66.0.1" }] }] }, /the bastion/],
    [{ racks: [{ machines: [{ profile: "perfect" }] }] }, /site\.racks\[0\]\.machines\[0\]\.profile/],
    [{ racks: [{ machines: [{ image: "other" }] }] }, /the image "other", which the site does not have/],
    [{ racks: [{ machines: [{ cluster: "other" }] }] }, /the cluster "other", which the site does not have/],
    [{ racks: 1, pxe: { profile: "p", image: "other" } }, /site\.pxe\.image/],
    [{ racks: 1, images: [{ ref: "a", digest: "md5:1" }] }, /site\.images\[0\]\.digest/],
    [undefined, /site/],
  ])("names the wrong field of %j", (description, reason) => {
    expect(() => buildSite(description, seeded)).toThrow(reason);
  });
});
