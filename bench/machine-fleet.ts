import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceDeps } from "../src/services/call/deps.ts";
import { createCluster } from "../src/services/catalog/clusters.ts";
import { createImage } from "../src/services/catalog/images.ts";
import { openSecretStore, type SecretStore } from "../src/store/access/secrets.ts";
import type { Database, Transaction } from "../src/store/postgres/database.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import { addressOfMachine, IMAGE_DIGEST } from "./instant-machines.ts";

/** Machines on record, with what runs need of them. */
export interface MachineFleet {
  readonly deps: ServiceDeps;
  readonly keyFile: string;
  /** Machines `m-<first>` … `m-<first + count - 1>`, at rest and without credentials. */
  addMachines(first: number, count: number): Promise<void>;
  /** What the built-in plans name, and credentials for the machines. */
  prepareRuns(first: number, count: number): Promise<void>;
  close(): void;
}

export const benchCaller = { name: "bench", roles: ["admin"], address: null } as const;

export function createMachineFleet(db: Database): MachineFleet {
  const directory = mkdtempSync(join(tmpdir(), "millwright-bench-keys-"));
  const keyFile = join(directory, "secret.key");
  const secrets = openSecretStore({ keyFile });
  const deps: ServiceDeps = { db, stores: allStores, secrets, maxFindByIds: 100 };
  return {
    deps,
    keyFile,
    addMachines: (first, count) => addMachines(db, first, count),
    async prepareRuns(first, count) {
      await putCredentials(db, secrets, first, count);
      const apiUrl = "https://10.0.0.1:6443";
      await createCluster(deps, benchCaller, { name: "default-cluster", apiUrl, kubeconfig: kubeconfigOf(apiUrl) });
      await createImage(deps, benchCaller, {
        name: "ubuntu:22.04-k8s",
        kind: "iso",
        location: "http://images/ubuntu.iso",
        digest: IMAGE_DIGEST,
        successProof: "",
      });
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
}

const PER_RACK = 18;
const PER_CUSTOMER = 500;

/** As their registration leaves them, in a few statements; statistics are made as the database would make them by itself in time. */
async function addMachines(db: Database, first: number, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  await db.transaction(async (tx) => {
    await tx.query(
      `insert into machines (id, labels, provider, serial, macs, rack, slot, location, customer_id, target_cluster,
                             ssh_endpoint, bmc_endpoint, bmc_protocol, state, conditions, facts)
       select 'm-' || n, jsonb_build_object('tier', 't' || n % 10, 'pool', 'p' || n % 100), 'datacenter', 'SN-m-' || n,
              array['02:01:' || substr(h, 1, 2) || ':' || substr(h, 3, 2) || ':' || substr(h, 5, 2) || ':' || substr(h, 7, 2)],
              'rack-' || n / ${PER_RACK}, (n % ${PER_RACK})::text, 'hall-' || n % 4, 'customer-' || n / ${PER_CUSTOMER},
              'default-cluster', address, address, 'redfish', 'FACTORY_READY',
              '[{"type": "Reachable", "status": true, "reason": "Answers", "message": "", "last_transition": "2026-01-01T00:00:00Z"},
                {"type": "BMCReachable", "status": true, "reason": "Answers", "message": "", "last_transition": "2026-01-01T00:00:00Z"}]',
              jsonb_build_object('serial', 'SN-m-' || n, 'vendor', 'Instant', 'model', 'Machine 9', 'powerState', 'on')
         from (select n, address, lpad(to_hex(n), 8, '0') as h from unnest($1::int[], $2::text[]) as t(n, address)) as t`,
      [numbers, numbers.map(addressOfMachine)],
    );
    await tx.query(
      `insert into machine_identities (kind, value, machine_id)
       select 'serial', serial, id from machines where id = any($1)
       union all select 'mac', macs[1], id from machines where id = any($1)
       union all select 'bmc', bmc_endpoint, id from machines where id = any($1)`,
      [numbers.map((n) => `m-${n}`)],
    );
    await tx.query(
      `insert into journal (epoch, kind, id, version, type, to_state, actor)
       select e.epoch, 'machine', 'm-' || n, 1, 'created', 'FACTORY_READY', 'bench'
         from journal_epoch e cross join unnest($1::int[]) as n`,
      [numbers],
    );
    await tx.query(
      `insert into work (kind, id, wake_at) select 'machine', 'm-' || n, 'infinity' from unnest($1::int[]) as n`,
      [numbers],
    );
    // What is measured is not how fast machines are looked at that nobody has built.
    await tx.query(`update condition_looks set due_at = 'infinity'`);
  });
  await db.query("vacuum analyze machines");
  await db.query("vacuum analyze work");
}

/** The secret store writes one at a time; its statements are collected here, and sent as one. */
async function putCredentials(db: Database, secrets: SecretStore, first: number, count: number): Promise<void> {
  const rows: (readonly unknown[])[] = [];
  const collector: Transaction = {
    insideTransaction: true,
    logWhenCommitted: () => undefined,
    notifyWhenCommitted: () => undefined,
    query: (statement, values) => db.query(statement, values), // which key encrypts
    async execute(_statement, values = []) {
      rows.push(values);
      return 1;
    },
  };
  for (let n = first; n < first + count; n += 1) {
    // Bound to nothing, as those of an earlier version: they are for the address on record.
    await secrets.put(collector, `bmc/m-${n}`, JSON.stringify({ username: "root", password: "instant" }));
    await secrets.put(collector, `ssh/m-${n}`, JSON.stringify({ username: "root", privateKey: "instant" }));
  }
  await db.query(
    `insert into secrets (name, key_id, nonce, ciphertext)
     select * from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])`,
    [0, 1, 2, 3].map((column) => rows.map((row) => row[column])),
  );
}

const kubeconfigOf = (server: string): string => `apiVersion: v1
kind: Config
current-context: bench
contexts:
- name: bench
  context: { cluster: bench, user: bench }
clusters:
- name: bench
  cluster: { server: "${server}" }
users:
- name: bench
  user: { token: instant }
`;
