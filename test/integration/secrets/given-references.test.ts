import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/kernel/errors.ts";
import { createSecretReferences } from "../../../src/providers/references/references.ts";
import { allWorkflows } from "../../../src/runs/workflows/index.ts";
import type { Caller } from "../../../src/services/call/caller.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { createCluster, updateCluster } from "../../../src/services/catalog/clusters.ts";
import {
  addExpectedPowerShelf,
  replaceAllExpectedPowerShelves,
  updateExpectedPowerShelf,
} from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { addExpectedSwitch } from "../../../src/services/expected-switch/expected-switches.ts";
import { onboardNode } from "../../../src/services/fleet/onboard.ts";
import { onboardNodes } from "../../../src/services/fleet/onboard-many.ts";
import { addSite, changeSite } from "../../../src/services/fleet/sites.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { setPowerShelfCredentials } from "../../../src/services/power-shelf/credentials.ts";
import { createPowerShelf } from "../../../src/services/power-shelf/power-shelves.ts";
import { createRackFirmware } from "../../../src/services/rack-firmware/rack-firmware.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { openSecretStore, type SecretStore } from "../../../src/store/access/secrets.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { NOTHING_ELSE } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { dumpTables } from "../api/forge-under-test.ts";

/** Whatever credential is given by reference: an administrator alone may, it is read where it is used, and nothing holds what it is. */

const CANARY = "canary-given-51e8";
const KEY = `-----BEGIN RSA PRIVATE KEY-----\n${CANARY}\n-----END RSA PRIVATE KEY-----`;

const admin: Caller = { name: "kim", roles: ["admin"], address: null };
const others: readonly Caller[] = ["credentials", "operator", "ForgeAdminCLI"].map((role) => ({
  ...{ name: "pat", address: null },
  roles: [role],
}));

let database: TestDatabase;
let scratch: string;
let secrets: SecretStore;
let deps: ServiceDeps;
beforeAll(async () => {
  database = await createTestDatabase();
  scratch = realpathSync(mkdtempSync(join(tmpdir(), "millwright-given-")));
  const root = join(scratch, "root");
  mkdirSync(root);
  writeFileSync(join(root, "text"), CANARY);
  writeFileSync(join(root, "ssh"), KEY);
  writeFileSync(join(scratch, "outside"), CANARY);
  const clock = { monotonic: () => 0 };
  const references = createSecretReferences(
    { fileRoots: [root], envPrefix: "MW_GIVEN_", vault: null },
    { clock, env: {} },
  );
  secrets = openSecretStore({ keyFile: join(scratch, "key"), references });
  await secrets.checkKeys(database.db);
  const maas = { checkKey: () => undefined } as unknown as NonNullable<ServiceDeps["maas"]>;
  await database.db.execute(
    "insert into fleet_sites (name, url, created_by) values ('onboarding', 'https://maas.example/MAAS', 'test')",
  );
  await database.db.execute(
    "insert into fleet_profiles (site, name, policy, created_by) values ('onboarding', 'h100', '{}', 'test')",
  );
  deps = { db: database.db, secrets, references, stores: allStores, maxFindByIds: 100, maas };
});
afterAll(async () => {
  await database.drop();
  rmSync(scratch, { recursive: true });
});

let count = 0;
const next = () => {
  count += 1;
  return { number: count, mac: `02:00:00:00:00:${count.toString(16).padStart(2, "0")}`, address: `10.9.9.${count}` };
};
const metadata = { name: "", description: "", labels: {} };
const shelfRow = (bmcPassword: string | undefined, { number, mac, address } = next()) => ({
  ...{ bmcMac: mac, bmcUsername: "root", bmcPassword, serial: `serial-${number}`, bmcEndpoint: address },
  ...{ rackId: undefined, metadata },
});

interface Given {
  readonly caller: Caller;
  readonly text: string;
}

/** Every way in that a credential has, and the name of the secret that it becomes. */
const WAYS: Readonly<Record<string, (given: Given) => Promise<string>>> = {
  "the BMC of a machine": async ({ caller, text: bmcPassword }) => {
    const id = await aMachine();
    await setMachineCredentials(deps, caller, {
      ...{ machineId: id, bmcUsername: "root", bmcPassword },
      sshUsername: "",
      sshPrivateKey: "",
    });
    return `bmc/${id}`;
  },
  "the system of a machine": async ({ caller, text }) => {
    const id = await aMachine();
    const sshPrivateKey = text.replace(/text$/, "ssh");
    await setMachineCredentials(deps, caller, {
      machineId: id,
      bmcUsername: "",
      bmcPassword: "",
      sshUsername: "root",
      sshPrivateKey,
    });
    return `ssh/${id}`;
  },
  "a shelf that is put on record": async ({ caller, text: bmcPassword }) => {
    const { mac, address } = next();
    await aShelf(caller, { mac, address, bmcPassword });
    return `bmc/${mac}`;
  },
  "a shelf on record": async ({ caller, text: bmcPassword }) => {
    const { mac, address } = next();
    const { id } = await aShelf(admin, { mac, address, bmcPassword: "before" });
    await setPowerShelfCredentials(deps, caller, { id, bmcUsername: "root", bmcPassword });
    return `bmc/${mac}`;
  },
  "an expected shelf": async ({ caller, text }) => {
    const row = shelfRow(text);
    await addExpectedPowerShelf(deps, caller, row);
    return `bmc/${row.bmcMac}`;
  },
  "an expected shelf that is updated": async ({ caller, text }) => {
    const at = next();
    await addExpectedPowerShelf(deps, admin, shelfRow("before", at));
    await updateExpectedPowerShelf(deps, caller, shelfRow(text, at));
    return `bmc/${at.mac}`;
  },
  "all expected shelves": async ({ caller, text }) => {
    const row = shelfRow(text);
    await replaceAllExpectedPowerShelves(deps, caller, [shelfRow("another"), row]);
    return `bmc/${row.bmcMac}`;
  },
  "the BMC of an expected switch": async ({ caller, text }) => {
    const row = { ...shelfRow(text), nvosMacs: [], nvosUsername: undefined, nvosPassword: undefined };
    await addExpectedSwitch(deps, caller, row);
    return `bmc/${row.bmcMac}`;
  },
  "the system of an expected switch": async ({ caller, text }) => {
    const row = { ...shelfRow("own"), nvosMacs: [], nvosUsername: "cumulus", nvosPassword: text };
    await addExpectedSwitch(deps, caller, row);
    return `nvos/${row.bmcMac}`;
  },
  "a cluster": async ({ caller, text: kubeconfig }) => {
    const name = `cluster-${next().number}`;
    await createCluster(deps, caller, { name, apiUrl: "https://10.0.0.1:6443", kubeconfig });
    return `cluster/${name}`;
  },
  "a cluster that is updated": async ({ caller, text: kubeconfig }) => {
    const name = `cluster-${next().number}`;
    await createCluster(deps, admin, { name, apiUrl: "https://10.0.0.1:6443", kubeconfig: "before" });
    await updateCluster(deps, caller, { name, kubeconfig, otherCluster: true });
    return `cluster/${name}`;
  },
  "a fleet site": async ({ caller, text: apiKey }) => {
    const name = `site-${next().number}`;
    await addSite(deps, caller, aSite(name, apiKey));
    return `fleet-site/${name}`;
  },
  "a fleet site that is updated": async ({ caller, text: apiKey }) => {
    const name = `site-${next().number}`;
    await addSite(deps, admin, aSite(name, "before"));
    await changeSite(deps, caller, { name, apiKey, allowHttp: false, skipProbe: true });
    return `fleet-site/${name}`;
  },
  "rack firmware": async ({ caller, text: token }) => {
    const id = `fw-${next().number}`;
    const Locations = [{ Location: "https://files.example/a", Type: "Firmware", Sha256: "0".repeat(64) }];
    const Firmware = [{ Component: "BMC", Version: "2.1", Locations }];
    const configJson = JSON.stringify({ Id: id, BoardSKUs: [{ Type: "Compute Node", Components: { Firmware } }] });
    await createRackFirmware(deps, caller, { configJson, token, hardwareType: "any" });
    return `rack-firmware/${id}`;
  },
};

/** The two ways in that a node of the fleet has: by itself, and with others. */
const ONBOARDING: typeof WAYS = {
  "a node that is onboarded": async ({ caller, text }) => {
    const node = nodeAt(text);
    await onboardNode(runDeps(), caller, { requestId: node.hostname, ...node });
    return secretAt(node.ipmiIp);
  },
  "nodes that are onboarded together": async ({ caller, text }) => {
    const [node, other] = [nodeAt(text), nodeAt("another")];
    await onboardNodes(runDeps(), caller, { requestId: node.hostname, nodes: [other, node] });
    return secretAt(node.ipmiIp);
  },
};

const nodeAt = (bmcPassword: string) => {
  const { number, address: ipmiIp } = next();
  const what = { site: "onboarding", profile: "h100", sku: "gpu8", mode: "maas" };
  return { ...what, hostname: `gpu-${number}`, ipmiIp, bmcUsername: "root", bmcPassword };
};

const secretAt = async (address: string): Promise<string> => {
  const [row] = await database.db.query<{ id: string }>(
    "select machine_id as id from machine_identities where kind = 'bmc' and value like $1",
    [`${address} %`],
  );
  return `bmc/${row?.id}`;
};

/** What runs need besides: nothing of it is asked where a node is put on record. */
const runDeps = () => ({ ...deps, workflows: allWorkflows, steps: new Map() }) as unknown as RunDeps;

async function aMachine(): Promise<string> {
  const { number, mac, address } = next();
  const id = `m-${number}`;
  const spec = {
    ...NOTHING_ELSE,
    serial: id,
    macAddresses: [mac],
    bmcEndpoint: address,
    sshEndpoint: `${id}.example`,
    sshHostKey: "",
    jumpHosts: [],
  };
  await registerMachine(deps, admin, { id, labels: {}, spec });
  return id;
}

const aShelf = (caller: Caller, at: { readonly mac: string; readonly address: string; readonly bmcPassword: string }) =>
  createPowerShelf(deps, caller, {
    ...{ id: undefined, name: "", rackId: undefined, bmcScheme: "", trust: "pin", requestId: undefined },
    ...{ bmcEndpoint: at.address, bmcMac: at.mac, bmcUsername: "root", bmcPassword: at.bmcPassword },
  });

const aSite = (name: string, apiKey: string) => ({
  ...{ name, apiKey, url: "https://maas.example/MAAS", description: "" },
  ...{ retainInMaas: false, allowHttp: false, skipProbe: true },
});

const reference = () => `file:${join(scratch, "root", "text")}`;
const refusal = (work: Promise<unknown>): Promise<AppError> =>
  work.then(
    (done) => Promise.reject(new Error(`was taken: ${done}`)),
    (error: unknown) => (error instanceof AppError ? error : Promise.reject(error)),
  );

const ALL_WAYS = { ...WAYS, ...ONBOARDING };

describe.each(Object.keys(ALL_WAYS))("a reference for %s", (way) => {
  const give = (given: Given) => ALL_WAYS[way]?.(given) ?? Promise.reject(new Error(way));

  test("is followed when it is used, and nothing on record holds what it leads to", async () => {
    const name = await give({ caller: admin, text: reference() });
    const read = async () => [...(await secrets.getManyUnsent(database.db, [name])).values()];
    expect((await read()).join()).toContain(CANARY);
    const stored = [...(await secrets.getManyAsStored(database.db, [name])).values()].join();
    expect(stored).not.toContain(CANARY);
    expect(stored).toContain(scratch);
    expect(JSON.stringify(await dumpTables(database.db))).not.toContain(CANARY);
  });

  test("is refused of everybody but an administrator", async () => {
    for (const caller of others)
      expect(await refusal(give({ caller, text: reference() }))).toMatchObject({
        kind: "permission_denied",
        // Nobody else gives the account of a node, whatever it is.
        message: expect.stringMatching(
          way in ONBOARDING ? /requires the role admin/ : /a reference to a secret requires role admin/,
        ),
      });
  });

  test("is refused of an administrator whose token is limited to some racks, clusters, customers or labels", async () => {
    const scope = { methods: [], racks: ["rack-1"], clusters: [], customers: [], labels: [] };
    expect(await refusal(give({ caller: { ...admin, scope }, text: reference() }))).toMatchObject({
      kind: "permission_denied",
      message: expect.stringMatching(/a reference to a secret requires a token without a scope/),
    });
  });

  test("is refused where it leads nowhere, elsewhere, or is what marks one on record; nothing of it is repeated", async () => {
    for (const text of [
      `file:${join(scratch, "outside")}`,
      "file:/etc/passwd",
      "env:PATH",
      "vault:secret/a#b",
      "\0ref:env:MW_GIVEN_X",
    ]) {
      const refused = await refusal(give({ caller: admin, text }));
      expect(refused.kind).toBe("invalid_argument");
      expect(refused.detail.field).toMatch(/password$|^ssh_private_key$|^kubeconfig$|^api_key$|^artifactory_token$/);
      expect(JSON.stringify([refused.message, refused.detail])).not.toContain(CANARY);
    }
  });
});

test("a password that begins like a reference is given behind literal:", async () => {
  const name =
    (await WAYS["the BMC of a machine"]?.({ caller: others[0] as Caller, text: "literal:env:of-its-own" })) ?? "";
  expect([...(await secrets.getManyUnsent(database.db, [name])).values()]).toEqual([
    JSON.stringify({ username: "root", password: "env:of-its-own" }),
  ]);
});
