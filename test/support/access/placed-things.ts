import type { Queryable } from "../../../src/store/postgres/database.ts";

/** A thing of every kind that is somewhere, within the scope `racks=inside` and outside of it; the ids say which. */
export async function placeThings(db: Queryable, where: "inside" | "outside"): Promise<void> {
  const hex = where === "inside" ? "01" : "02";
  const at = `'${where}'`;
  const settled = "'2026-01-01T00:00:00Z'::timestamptz";
  const texts = [
    `insert into racks (id, name, state) values (${at}, ${at}, 'ready')`,
    `insert into machines (id, provider, state, rack, customer_id, target_cluster, labels)
     values ('m-${where}', 'redfish', 'READY', ${at}, 'acme-${where}', 'c-${where}', '{"env": "${where}"}')`,
    `insert into switches (id, name, rack_id, bmc_mac, bmc_address, bmc_port, labels, state)
     values ('sw-${where}', 's', ${at}, 'cc:00:00:00:00:${hex}', '10.0.0.1', 443, '{"env": "${where}"}', 'ready')`,
    `insert into power_shelves (id, name, rack_id, bmc_mac, bmc_address, bmc_port, labels, state)
     values ('ps-${where}', 'p', ${at}, 'aa:00:00:00:00:${hex}', '10.0.0.2', 443, '{"env": "${where}"}', 'ready')`,
    `insert into expected_power_shelves (id, name, rack_id, bmc_mac, bmc_username, shelf_serial_number, state)
     values ('ep-${where}', 'e', ${at}, 'bb:00:00:00:00:${hex}', 'root', 'S', 'exploring')`,
    `insert into installs (id, mac, facts, state) values ('m-${where}', '02:00:00:00:00:${hex}', '{}', 'discovered')`,
    `insert into host_reprovisions (id, state) values ('m-${where}', 'idle')`,
    `insert into fleet_sites (name, url, description, is_enabled, retain_in_maas, created_by) values ('s-${where}', 'https://maas', '', true, true, 'test')`,
    `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state)
     values ('fn-${where}', 's-${where}', 'p', 's', 'h-${where}', 'maas', 'm-${where}', 'q-${where}', '', 'test', 'retired')`,
    ...(["machine", "rack"] as const).map(
      (
        kind,
      ) => `insert into runs (id, target_kind, target_id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, attempt, action,
                                   initiator, created_at, state, state_since, facts)
       values ('run-${kind}-${where}', '${kind}', '${kind === "rack" ? where : `m-${where}`}', ${kind === "machine" ? `'m-${where}'` : "null"},
               'r-${kind}-${where}', '', 'REBOOT', 'p', '{"planId": "p", "displayName": "", "steps": [], "builtIn": true}', 'job-${kind}-${where}', 1,
               'start', 'test', ${settled}, 'SUCCEEDED', ${settled}, '{}')`,
    ),
  ];
  for (const text of texts) await db.execute(text);
}
