import type { ServiceImpl } from "@connectrpc/connect";
import type { HealthReportService } from "../../../contract/millwright/v1/health_report_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { findHealthReports, insertHealthReport, removeHealthReport } from "../../services/device/health-reports.ts";
import { callerKey } from "../transport/interceptors.ts";
import { deviceNamed, deviceReportsOf, insertFrom } from "./health-report-messages.ts";

export const healthReports = (deps: ServiceDeps): ServiceImpl<typeof HealthReportService> => ({
  async listHealthReports(request) {
    return { reports: deviceReportsOf(await findHealthReports(deps, deviceNamed(request))) };
  },
  async putHealthReport(request, { values }) {
    await insertHealthReport(deps, values.get(callerKey), insertFrom(request));
    return {};
  },
  async removeHealthReport(request, { values }) {
    const { source } = request;
    await removeHealthReport(deps, values.get(callerKey), { device: deviceNamed(request), source });
    return {};
  },
});
