import type { Queryable } from "../../src/store/postgres/database.ts";

/**
 * Rows of every kind of thing that callers list, `count` of them from number `from` on, with all that a list can be filtered and
 * sorted by: values that many share, values that are missing, and times that differ by less than a millisecond.
 */
export const LISTED_ROWS = {
  machines: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into machines (id, provider, state, rack, slot, location, serial, customer_id, target_cluster, macs, labels, facts,
                             conditions, bmc_endpoint, created_at, state_since, active_run_id, last_run_id)
       select 'm-' || lpad(i::text, 5, '0'), (array['redfish', 'ipmi', 'Redfish'])[1 + i % 3],
              (array['READY', 'RMA', 'MAINTENANCE', 'FACTORY_READY', 'RETIRED'])[1 + i % 5],
              case when i % 4 > 0 then 'rack-' || i % 3 end, nullif((i % 7)::text, '0'), nullif('Hall ' || i % 2, 'Hall 0'),
              'S' || i, nullif('acme' || i % 2, 'acme0'), null, array['02:00:00:00:00:' || lpad(to_hex(i % 200), 2, '0')],
              case when i % 3 = 0 then '{}' else jsonb_build_object('env', (array['prod', 'DEV'])[1 + i % 2], 'odd key', i % 5 || '') end,
              case when i % 2 = 0 then '{}' else jsonb_build_object('powerState', (array['on', 'off'])[1 + i % 2], 'vendor', 'Acme ' || i % 3) end,
              case when i % 3 = 0 then '[]' else jsonb_build_array(
                jsonb_build_object('type', 'Reachable', 'status', i % 2 = 0, 'reason', 'r', 'message', '', 'last_transition', '2026-01-01T00:00:00.000Z')
                  || case when i % 4 = 0 then '{}' else jsonb_build_object('cause', jsonb_build_object('code', (array['unreachable', 'timed_out', 'busy'])[1 + i % 3])) end,
                jsonb_build_object('type', 'Degraded', 'status', i % 5 = 0, 'reason', 'r', 'message', '', 'last_transition', '2026-01-01T00:00:00.000Z')) end,
              case when i % 2 = 0 then '10.0.0.' || i % 250 end,
              '2026-01-01T00:00:00Z'::timestamptz + (i / 3) * interval '7 microseconds', '2026-01-02T00:00:00Z'::timestamptz + (i % 6) * interval '1 hour',
              case when i % 9 = 0 then 'run-' || i end, case when i % 2 = 0 then 'run-last' end
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  runs: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into runs (id, target_kind, target_id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, attempt, action,
                         initiator, created_at, state, state_since, facts)
       select 'run-' || lpad(i::text, 5, '0'), (array['machine', 'rack'])[1 + i % 2], case when i % 10 = 0 then 'active-' || i else 't-' || i % 5 end,
              case when i % 2 = 0 and i % 10 > 0 then 'm-none-' || i % 4 end, 'request-' || i, '', (array['REBOOT', 'RMA', ''])[1 + i % 3],
              'plan/' || i % 3, jsonb_build_object('planId', 'plan/' || i % 3, 'displayName', '', 'steps', '[]'::jsonb, 'builtIn', true),
              'job-' || i, 1 + i % 4, (array['start', 'retry'])[1 + i % 2], (array['ann', 'Bob'])[1 + i % 2],
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds',
              case when i % 10 = 0 then 'RUNNING' else (array['SUCCEEDED', 'FAILED', 'CANCELED'])[1 + i % 3] end, '2026-01-02T00:00:00.123456Z'::timestamptz + i % 3 * interval '1 hour',
              case when i % 3 = 0 then '{}'::jsonb else jsonb_build_object('startedAt', '2026-01-01T0' || i % 4 || ':00:00.000Z',
                'finishedAt', '2026-01-01T1' || i % 5 || ':00:00.000Z') end
              || case when i % 10 = 0 then jsonb_build_object('steps', jsonb_build_array(
                   jsonb_build_object('name', 'a', 'kind', 'reboot', 'state', 'SUCCEEDED', 'retryCount', 1, 'cause', '{"code": "busy"}'::jsonb),
                   jsonb_build_object('name', 'b', 'kind', 'reboot', 'state', 'RUNNING', 'retryCount', 0)
                     || case when i % 20 = 0 then '{"cause": {"code": "timed_out", "facts": {"at": "bmc"}}}' else '{}' end::jsonb))
                   when i % 3 = 1 then jsonb_build_object('error', jsonb_build_object('code', 'EXECUTION_FAILED', 'message', 'm', 'retryable', true,
                     'details', case when i % 4 = 0 then '{}'::jsonb else jsonb_build_object('cause', (array['unreachable', 'timed_out', 'busy'])[1 + i % 3], 'at', 'ssh') end))
                   else '{}' end
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  "power shelves": (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into power_shelves (id, name, description, rack_id, bmc_mac, bmc_address, bmc_port, labels, facts, state, state_since,
                                  deleted_at, created_at, state_data, outcome)
       select 'ps-' || lpad(i::text, 5, '0'), 'Shelf ' || i % 6, case when i % 2 = 0 then '' else 'left' end,
              case when i % 3 > 0 then 'rack-' || i % 4 end, 'aa:' || lpad(to_hex(i / 256), 2, '0') || ':00:00:00:' || lpad(to_hex(i % 256), 2, '0'),
              '10.0.0.' || i % 5, 443, case when i % 2 = 0 then '{"tier": "gold", "spare": null}' else '{}' end::jsonb,
              case when i % 3 = 0 then '{}'::jsonb else jsonb_build_object('serial', 'S' || i, 'capacityWatts', case when i % 2 = 0 then 'null'::jsonb else to_jsonb(i % 5 * 1000) end,
                'powerState', 'on', 'health', (array['ok', 'warning'])[1 + i % 2]) end,
              (array['ready', 'error', 'configuring'])[1 + i % 3], now() - (i % 4) * interval '3 minutes',
              case when i % 5 = 0 then '2026-01-01T00:00:00Z'::timestamptz + i * interval '1 second' end,
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds',
              case when i % 3 = 1 and i % 2 = 0 then '{"cause": "it refused", "failure": {"code": "refused_by_device"}}' else '{}' end::jsonb,
              case when i % 4 = 0 then jsonb_build_object('type', 'failing', 'reason', 'r', 'since', to_jsonb(now() - (i % 8) * interval '1 minute'))
                     || case when i % 8 = 0 then jsonb_build_object('cause', jsonb_build_object('code', (array['unreachable', 'timed_out', 'busy'])[1 + i % 3])) else '{}' end
                   when i % 7 = 0 then '{"type": "needs_intervention", "reason": "r"}' end
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  switches: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into switches (id, name, description, rack_id, bmc_mac, bmc_address, bmc_port, labels, facts, state, state_since,
                             deleted_at, created_at, state_data, outcome, nvos_macs)
       select 'sw-' || lpad(i::text, 5, '0'), 'Switch ' || i % 6, case when i % 2 = 0 then '' else 'left' end,
              case when i % 3 > 0 then 'rack-' || i % 4 end, 'cc:' || lpad(to_hex(i / 256), 2, '0') || ':00:00:00:' || lpad(to_hex(i % 256), 2, '0'),
              '10.0.1.' || i % 5, 443, case when i % 2 = 0 then '{"tier": "gold", "spare": null}' else '{}' end::jsonb,
              case when i % 3 = 0 then '{}'::jsonb else jsonb_build_object('serial', 'S' || i, 'trayIndex', case when i % 2 = 0 then 'null'::jsonb else to_jsonb(i % 9) end,
                'isPrimary', i % 9 = 1, 'fabric', case when i % 4 > 0 then jsonb_build_object('state', (array['ok', 'not_ok'])[1 + i % 2], 'at', '2026-01-01T00:00:00.000Z') end,
                'powerState', 'on', 'health', (array['ok', 'warning'])[1 + i % 2]) end,
              (array['ready', 'error', 'bom_validating'])[1 + i % 3], now() - (i % 4) * interval '3 minutes',
              case when i % 5 = 0 then '2026-01-01T00:00:00Z'::timestamptz + i * interval '1 second' end,
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds',
              case when i % 3 = 1 and i % 2 = 0 then '{"cause": "it refused", "failure": {"code": "refused_by_device"}}' else '{}' end::jsonb,
              case when i % 4 = 0 then jsonb_build_object('type', 'failing', 'reason', 'r', 'since', to_jsonb(now() - (i % 8) * interval '1 minute'))
                   when i % 7 = 0 then '{"type": "needs_intervention", "reason": "r"}' end,
              case when i % 2 = 0 then '{}'::text[] else array['dd:00:00:00:00:' || lpad(to_hex(i % 200), 2, '0')] end
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  racks: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into racks (id, name, description, rack_profile_id, labels, state, state_since, deleted_at, created_at, state_data, outcome,
                          maintenance_requested, reprovision_requested)
       select 'r-' || lpad(i::text, 5, '0'), 'Rack ' || i % 6, case when i % 2 = 0 then '' else 'left' end, nullif('p' || i % 3, 'p0'),
              case when i % 2 = 0 then '{"tier": "gold", "spare": null}' else '{}' end::jsonb,
              (array['ready', 'error', 'created', 'maintenance', 'discovering'])[1 + i % 5], now() - (i % 4) * interval '11 hours',
              case when i % 7 = 0 then '2026-01-01T00:00:00Z'::timestamptz + i * interval '1 second' end,
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds',
              case i % 5 when 1 then '{"cause": "m1 failed", "failure": {"code": "firmware_not_applied"}}'
                         when 3 then '{"activity": "firmware_upgrade", "phase": "start", "trigger": "on_demand"}' else '{}' end::jsonb,
              case when i % 4 = 0 then jsonb_build_object('type', 'failing', 'reason', 'r', 'since', to_jsonb(now() - (i % 8) * interval '1 minute'))
                   when i % 11 = 0 then '{"type": "needs_intervention", "reason": "r"}'
                   when i % 3 = 0 then '{"type": "waiting", "reason": "r", "cause": {"code": "busy"}}' end,
              case when i % 6 = 0 then '{"id": "q1", "initiator": "ann", "requested_at": "2026-01-01T00:00:00.000Z", "scope": {"machine_ids": [], "switch_ids": [], "power_shelf_ids": []}, "activities": []}'::jsonb end,
              case when i % 9 = 0 then '{"id": "q2", "initiator": "ann", "requested_at": "2026-01-01T00:00:00.000Z", "scope": {"machine_ids": [], "switch_ids": [], "power_shelf_ids": []}, "activities": []}'::jsonb end
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  "expected power shelves": (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into expected_power_shelves (id, name, rack_id, bmc_mac, bmc_username, bmc_address, bmc_port, shelf_serial_number, labels,
                                           facts, state, created_at, outcome)
       select 'e-' || lpad(i::text, 5, '0'), 'Shelf ' || i % 6, case when i % 3 > 0 then 'rack-' || i % 4 end,
              'bb:' || lpad(to_hex(i / 256), 2, '0') || ':00:00:00:' || lpad(to_hex(i % 256), 2, '0'), 'root',
              case when i % 2 = 0 then '10.0.0.' || i % 5 end, case when i % 2 = 0 then 443 end, 'S' || i % 9,
              case when i % 2 = 0 then '{"tier": "gold", "spare": null}' else '{}' end::jsonb,
              case when i % 3 = 0 then '{}'::jsonb else jsonb_build_object('explored', (array['linked', 'unreachable'])[1 + i % 2],
                'exploredAt', '2026-01-01T0' || i % 4 || ':00:00.000Z', 'powerShelfId', 'ps-' || i % 7) end,
              (array['linked', 'exploring'])[1 + i % 2], '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds',
              case when i % 3 = 0 then jsonb_build_object('type', 'waiting', 'reason', 'r', 'cause', jsonb_build_object('code', (array['unreachable', 'timed_out'])[1 + i % 2])) end
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  async nodes(db: Queryable, from: number, count: number) {
    await db.execute(
      `insert into machines (id, provider, state)
       select 'n-' || lpad(i::text, 5, '0'), 'fake', 'RETIRED' from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    );
    await db.execute(
      `insert into installs (id, mac, arch, boot_mode, tags, facts, state, state_since, created_at)
       select 'n-' || lpad(i::text, 5, '0'), '02:00:00:00:00:' || lpad(to_hex(i % 200), 2, '0'), (array['x86_64', 'arm64'])[1 + i % 2],
              (array['bios', 'uefi'])[1 + i % 2], case when i % 3 = 0 then '{}'::text[] when i % 3 = 1 then array['gpu'] else array['gpu', 'spare'] end,
              case when i % 3 = 0 then '{}'::jsonb else jsonb_build_object('hostname', 'Host-' || i % 5, 'installAttempts', i % 4,
                'lastSeenAt', '2026-01-01T0' || i % 4 || ':00:00.000Z', 'lastInstallError', case when i % 2 = 0 then 'no disk' end) end,
              (array['discovered', 'active', 'install_failed'])[1 + i % 3], '2026-01-02T00:00:00Z'::timestamptz + (i % 6) * interval '1 hour',
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    );
  },
  clusters: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into clusters (name, api_url, created_at, created_by)
       select 'c-' || lpad(i::text, 5, '0'), 'https://10.0.0.' || i % 5 || ':6443', '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds', 'ann'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  images: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into images (name, kind, location, digest, success_proof, seed, seed_on, created_at, created_by)
       select 'i-' || lpad(i::text, 5, '0'), (array['iso', 'disk', 'netboot'])[1 + i % 3], 'http://images/' || i % 7, 'sha256:' || repeat(to_hex(i % 16), 64),
              (array['ssh', 'token'])[1 + i % 2], case when i % 3 = 0 then (array['nocloud', 'kickstart'])[1 + i % 2] end,
              case when i % 6 = 0 then 'image' end, '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds', 'ann'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  "cloud-init documents": (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into cloud_init_documents (name, content, created_at, created_by)
       select 'd-' || lpad(i::text, 5, '0'), 'secret', '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds', 'ann'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  plans: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into plans (plan_id, display_name, steps, created_at, created_by)
       select 'p-' || lpad(i::text, 5, '0'), 'Plan ' || i % 5, jsonb_build_array(
                jsonb_build_object('name', 'first', 'kind', (array['reboot', 'ssh'])[1 + i % 2], 'timeoutSeconds', 60, 'maxRetries', 0, 'payload', '{}'::jsonb),
                jsonb_build_object('name', 'Step-' || i % 3, 'kind', 'repave', 'timeoutSeconds', 60, 'maxRetries', 0, 'payload', '{}'::jsonb)),
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds', 'ann'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  "fleet sites": (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into fleet_sites (name, url, description, is_enabled, retain_in_maas, created_at, updated_at, created_by)
       select 's-' || lpad(i::text, 5, '0'), 'https://maas' || i % 5 || '/MAAS', case when i % 2 = 0 then '' else 'Hall ' || i % 3 end, i % 3 > 0, i % 4 > 0,
              '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds', '2026-01-02T00:00:00Z'::timestamptz + i % 5 * interval '1 hour', 'ann'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
  /** Besides, tokens of agents, which are in no list. */
  tokens: (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into tokens (id, name, roles, hash, created_at, created_by, expires_at, revoked_at, last_used_at, bound_to, aged_from, ageless, scope, scoped_roles)
       select lpad(to_hex(i), 16, case when bound then 'f' else '0' end), case i % 9 when 0 then 'aging-' || i else 'robot-' || i % 7 end, case i % 3 when 0 then '{}' when 1 then array['viewer', 'auditor'] else array['operator'] end,
              sha256(i::text::bytea), '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '3 microseconds', (array['ann', 'Bob'])[1 + i % 2],
              case when i % 3 > 0 then now() + (i % 5 - 2) * interval '1 day' end, case when i % 4 = 0 then '2026-01-02T00:00:00Z'::timestamptz + (i % 6) * interval '1 hour' end,
              case when i % 2 = 0 then '2026-01-03T00:00:00.123456Z'::timestamptz + (i % 6) * interval '1 hour' end, case when bound then 'node-' || i end,
              now() - (i % 11) * interval '1 day', i % 9 > 0, case when i % 3 = 0 then '{"methods":["runs"]}'::jsonb end, case when i % 3 = 0 then array['admin'] end
         from generate_series($1::int, $1::int + $2::int - 1) as i, unnest(array[false, true]) as bound`,
      [from, count],
    ),
  "refused calls": (db: Queryable, from: number, count: number) =>
    db.execute(
      `insert into refused_calls (id, minute, address, name, method, outcome, calls, last_at)
       select 'refused-' || lpad(i::text, 5, '0'), '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '1 minute', '192.0.2.' || i,
              (array['', 'ann', 'Bob'])[1 + i % 3], (array['GET /api/v1/nodes', 'forge.Forge/Version'])[1 + i % 2],
              (array['sign_in_failed', 'refused'])[1 + i % 2], i % 5, '2026-01-01T00:00:00Z'::timestamptz + (i / 4) * interval '7 microseconds'
         from generate_series($1::int, $1::int + $2::int - 1) as i`,
      [from, count],
    ),
} as const satisfies Readonly<Record<string, (db: Queryable, from: number, count: number) => Promise<unknown>>>;

export type ListedKind = keyof typeof LISTED_ROWS;
