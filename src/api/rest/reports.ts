import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { getInstall } from "../../services/install/installs.ts";
import type { NodeReport, ReportDesk } from "../../services/install/reports.ts";
import { objectOf, one } from "./envelopes.ts";
import * as schemas from "./node-schemas.ts";
import { type AnyRoute, defineRoute, InvalidRequest } from "./route.ts";

export interface ReportRouteDeps {
  readonly services: ServiceDeps;
  readonly reports: ReportDesk;
}

const EXAMPLE = {
  mac_address: "02:00:5e:10:00:01",
  installation_status: "progress",
  installation_progress: 40,
  report_id: "boot-7-progress-40",
};

/** Whoever may lead a node by hand may report for it. */
const VOUCHED_AS = "PATCH /api/v1/nodes/{id}/state";

const report = ({ reports }: ReportRouteDeps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/report",
    tag: "reports",
    isForBoot: true,
    vouchedAs: VOUCHED_AS,
    summary: "What a node says of itself and of its install.",
    body: schemas.nodeReport,
    example: EXAMPLE,
    errors: { 404: "Nothing is known of the MAC address." },
    answer: objectOf(schemas.reportedNode),
    handle: ({ body, request, voucher }) => submit(reports, body, { mac: body.mac_address, voucher }, request),
  });

const installationStatus = ({ services, reports }: ReportRouteDeps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/{id}/installation-status",
    tag: "reports",
    isForBoot: true,
    vouchedAs: VOUCHED_AS,
    summary: "The same as a report, for who knows the node by its id.",
    params: schemas.nodeId,
    body: schemas.nodeReport.omit({ mac_address: true }),
    example: { installation_status: "complete" },
    errors: { 404: "There is no such node." },
    answer: objectOf(schemas.reportedNode),
    async handle({ params: { id }, body, request, voucher }) {
      const { mac } = await getInstall(services, id);
      return submit(reports, body, { mac, id, voucher }, request);
    },
  });

async function submit(
  reports: ReportDesk,
  body: Omit<z.output<typeof schemas.nodeReport>, "mac_address">,
  { mac, id, voucher }: { readonly mac: string; readonly id?: string; readonly voucher: Caller | undefined },
  request: FastifyRequest,
) {
  const answer = await reports.submit({
    report: reportOf(body, mac),
    nodeId: id,
    address: request.ip,
    reportId: body.report_id ?? idempotencyKeyOf(request),
    token: body.report_token,
    voucher,
  });
  if (answer instanceof AppError) throw answer;
  return one(schemas.reportedNodeJson(answer.state), answer.message);
}

const LONGEST_KEY = 128;

function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers["idempotency-key"];
  if (typeof key !== "string" || key === "") return undefined;
  if (key.length <= LONGEST_KEY) return key;
  // Cut short, two keys could become one, and the second report would be lost.
  throw new InvalidRequest([
    { type: "too_big", loc: ["header", "idempotency-key"], msg: `at most ${LONGEST_KEY} characters` },
  ]);
}

/** Left out, null and empty are all "nothing said". */
function reportOf(body: Omit<z.output<typeof schemas.nodeReport>, "mac_address">, mac: string): NodeReport {
  const said = {
    ipAddress: body.ip_address,
    hostname: body.hostname,
    vendor: body.vendor,
    model: body.model,
    serialNumber: body.serial_number,
    systemUuid: body.system_uuid,
    status: body.installation_status,
    progress: body.installation_progress,
    error: body.installation_error,
    step: body.step,
    event: body.event,
    erasedDisk: body.event === "disk_erased" ? needed(body.erased_disk, "erased_disk", body.event) : undefined,
    erasedDisks: body.event === "erased" ? needed(body.erased_disks, "erased_disks", body.event) : undefined,
  };
  return {
    mac,
    ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined && value !== null)),
  };
}

function needed<T>(value: T | undefined, field: string, event: string): T {
  if (value !== undefined) return value;
  throw new AppError("invalid_argument", `${field}: needed with event ${event}`, { field });
}

export const reportRoutes = (deps: ReportRouteDeps): AnyRoute[] => [report(deps), installationStatus(deps)];
